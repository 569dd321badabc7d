package server

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/internal/seal"
	"muster/internal/wording"
	"muster/jobs"
	"muster/scripts"
	"muster/server/stock"
)

// The bounds of a submit.
const (
	// horizon is how far in the future a task may start or expire: lists forget
	// a task 30 days after its submit.
	horizon = 30 * 24 * time.Hour
	// late is how far in the past a start may be: clocks differ, and bodies
	// travel. An earlier one is most likely a mistake, and would start at once.
	late      = time.Minute
	expireMin = time.Second
	// examples is how many hosts a message names when many are wrong alike.
	examples = 3
)

// plan is what a submit comes to.
type plan struct {
	task    jobs.Task           // without an id, if the submit has none
	hosts   map[string][]string // by zone, in the order of their names
	names   []string
	blobs   []string             // stored contents that it needs
	secrets map[string]seal.Text // to be sealed once the task has its id
	api.LeftOut
	fences  api.Fences
	picked  []fleet.Host    // as in names
	frozen  scripts.Frozen  // what it runs
	windows *api.WindowPlan // nil: it needs no windows
	held    []string        // by freezes: hosts, folded, and why
}

// setting is what a submit is resolved with.
type setting struct {
	catalog *scripts.Catalog
	stored  map[string]int64 // sizes of the stored contents that are named
	stock.Scene
	operator string
	proven   bool
	now      time.Time
	foretold bool // it is only to be told when it would be done
}

// makePlan finds out what a submit asks for, or every mistake in it. It changes
// nothing.
func makePlan(b api.Submit, in setting) (plan, []error) {
	var wrong []error
	note := func(location string, err error) { wrong = append(wrong, mistakes(location, err)...) }

	expire, err := parseExpire(b.Expire)
	note("body.expire", err)
	_, err = parseExpect(b.Expect)
	note("body.expect", err)
	note("body.at", checkAt(b.At, in.now))
	priority, err := jobs.ParsePriority(b.Priority)
	note("body.priority", err)
	picked, err := in.PickFor(b.On)
	note("body.on", err)
	hosts := picked.Hosts
	frozen, bad := in.bind(b)
	wrong = append(wrong, bad...)
	if len(bad) == 0 {
		note("body.on", checkHosts(frozen, hosts))
		wrong = append(wrong, checkNeeds(frozen.Limits(), hosts, in.Stock)...)
	}
	note("body.supersedes", checkKey(b.Supersedes))
	if b.Rollout != nil && b.SkipClosed {
		wrong = append(wrong, mistake("body.skip_closed", "a rule and waves count all hosts that are "+
			"selected: leave those out by the selector"))
	}
	rollout, blobs, hosts, bad := in.rollOut(b.Rollout, hosts)
	wrong = append(wrong, bad...)
	if len(wrong) > 0 {
		return plan{}, wrong
	}
	frozen.Disruptive = frozen.Disruptive || b.Disruptive
	spec, err := specOf(frozen)
	if err != nil {
		return plan{}, mistakes("body.runbook", err)
	}
	spec.On, spec.Expire, spec.Rollout = b.On, expire, rollout
	spec.Priority, spec.Supersedes = priority, b.Supersedes
	spec.Timing = timing(frozen, b)
	p := in.plan(jobs.Task{ID: jobs.TaskID(b.ID), At: jobs.MicrosOf(b.At.Time), Spec: spec}, hosts)
	if why := strings.TrimSpace(b.OverrideFreeze); why != "" {
		p.task.Spec.Override = in.operator + ": " + why
	}
	p.blobs, p.secrets = append(frozen.Blobs(), blobs...), frozen.Values.Plain
	p.frozen = frozen
	p.LeftOut = stock.LeftOut(picked)
	return p, nil
}

// specOf is what a frozen runbook alone says of a task.
func specOf(f scripts.Frozen) (jobs.Spec, error) {
	action, err := json.Marshal(f)
	return jobs.Spec{Runbook: f.Runbook, Timeout: jobs.AttemptTimeout(longest(f)),
		Expire: jobs.DefaultExpire, Repeatable: f.Repeatable, Needs: f.Limits(), Retry: policy(f),
		Action: action, Terms: jobs.Terms{Priority: jobs.PriorityNormal, Disruptive: f.Disruptive,
			ProveGroup: f.ProveGroup, Gates: f.Gated(), Ran: ranOf(f)},
		Timing: timing(f, api.Submit{})}, err
}

// plan completes a task by who asks, when, and for which hosts.
func (in setting) plan(t jobs.Task, hosts []fleet.Host) plan {
	t.Spec.Operator, t.Spec.Proven = in.operator, in.proven
	t.Spec.Inventory, t.Spec.Created = in.Stock.Version, jobs.MicrosOf(in.now)
	t.Guarded = guarded(t.Spec, hosts, in.Stock.Limits())
	p := plan{task: t}
	p.keep(hosts)
	return p
}

// keep makes hosts those of the plan.
func (p *plan) keep(hosts []fleet.Host) {
	p.picked, p.names, p.task.Total = hosts, nil, len(hosts)
	p.hosts = map[string][]string{}
	for _, h := range hosts {
		p.hosts[h.Zone] = append(p.hosts[h.Zone], h.Name)
		p.names = append(p.names, h.Name)
	}
}

func parseExpire(text string) (time.Duration, error) {
	if text == "" {
		return jobs.DefaultExpire, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < expireMin || d > horizon {
		return 0, fmt.Errorf("%q: want a time from 1s to 720h, such as 90m or 8h", clip(text))
	}
	return d, nil
}

func checkAt(at jobs.Time, now time.Time) error {
	switch {
	case at.IsZero():
		return nil
	case at.Before(now.Add(-late)):
		return fmt.Errorf("%s is in the past: leave it out to start at once", at)
	case at.After(now.Add(horizon)):
		return fmt.Errorf("%s is more than 30 days ahead", at)
	}
	return nil
}

func (in setting) bind(b api.Submit) (scripts.Frozen, []error) {
	runbook, err := in.catalog.Lookup(b.Runbook)
	if err != nil {
		return scripts.Frozen{}, mistakes("body.runbook", err)
	}
	values, err := runbook.BindGiven(scripts.Given{Args: b.Args, Secrets: secretTexts(b.Secrets),
		Files: b.Files, Stored: in.stored, Unsaid: in.foretold})
	if err != nil {
		return scripts.Frozen{}, mistakes("body.args", err)
	}
	frozen, err := runbook.Freeze(values).Only(b.Only)
	if err != nil {
		return scripts.Frozen{}, mistakes("body.only", err)
	}
	return frozen, nil
}

// checkHosts tells for which hosts a step cannot be made, such as those that
// lack a label which the runbook needs.
func checkHosts(f scripts.Frozen, hosts []fleet.Host) error {
	var errs []error
	var names []string
	for _, h := range hosts {
		err := f.Check(h)
		if err == nil {
			continue
		}
		if len(names) < examples {
			errs = append(errs, err)
		}
		names = append(names, h.Name)
	}
	if len(names) > examples {
		errs = append(errs, fmt.Errorf("%d of %d hosts cannot run it: %s", len(names), len(hosts),
			brief(fleet.Fold(names))))
	}
	return errors.Join(errs...)
}

// longest is the bound of the longest step.
func longest(f scripts.Frozen) time.Duration {
	var d time.Duration
	for _, s := range f.Steps {
		d = max(d, s.Timeout)
	}
	return d
}

// timing takes the bound of an attempt for what it takes, where neither the runbook nor who
// asks says it: never less than it may be. What was asked for was found right.
func timing(f scripts.Frozen, b api.Submit) jobs.Timing {
	said, _ := parseExpect(b.Expect)
	said = cmp.Or(said, f.Expect)
	return jobs.Timing{Window: f.Window || b.Window, Expect: cmp.Or(said, f.Timeout),
		Reserve: f.Reserve, Unsaid: said == 0}
}

// expectMax bounds how long a task may be said to take.
const expectMax = 168 * time.Hour

func parseExpect(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > expectMax {
		return 0, fmt.Errorf("%q: want a time from 1s to 168h, such as 90s or 20m", clip(text))
	}
	return d, nil
}

func policy(f scripts.Frozen) jobs.Policy {
	if f.Retry.Submit < 1 {
		return jobs.DefaultPolicy()
	}
	return jobs.Policy{Tries: f.Retry.Submit, Delay: f.Retry.Delay}
}

// brief bounds a list of hosts in a message.
func brief(hosts string) string { return wording.ClipList(hosts) }
