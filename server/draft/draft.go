package draft

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/internal/seal"
	"muster/internal/wording"
	"muster/jobs"
	"muster/scripts"
	"muster/server/fault"
	"muster/server/stock"
)

// The bounds of a submit.
const (
	// A task starts and expires before the horizon: lists forget
	// a task 30 days after its submit.
	horizon = 30 * 24 * time.Hour
	// A start may be this late: clocks differ, and bodies
	// travel. An earlier one is most likely a mistake, and would start at once.
	late      = time.Minute
	expireMin = time.Second
	// A message names so many examples when many hosts are wrong alike.
	examples = 3
)

// A Draft is a task before it is put into the queue.
type Draft struct {
	Task    jobs.Task           // without an id, if the submit has none
	Hosts   map[string][]string // by zone, in the order of their names
	Names   []string
	Blobs   []string             // stored contents that it needs
	Secrets map[string]seal.Text // to be sealed once the task has its id
	api.LeftOut
	Fences  api.Fences
	Picked  []fleet.Host    // as in Names
	All     *stock.Stock    // the inventory that they are from; nil: there is none
	Frozen  scripts.Frozen  // what it runs
	Windows *api.WindowPlan // nil: it needs no windows
	Held    []string        // by freezes, or left out in quarantine: hosts, folded, and why
	Waits   Waits           // for what it waits once it is put
	Glass   string          // why one person runs it alone; empty: that is not so
	Order   string          // the hash of its signed order; empty: it is not put, or nobody signs
}

// A Setting holds all that a request is resolved with.
type Setting struct {
	Catalog  *scripts.Catalog
	Stored   map[string]int64 // sizes of the stored contents that are named
	Scene    stock.Scene
	Operator string
	Proven   bool
	Now      time.Time
	Foretold bool // somebody only asks when the task would be done
}

// New makes the draft of a submit, or returns every mistake in it. It changes nothing.
func New(b api.Submit, in Setting) (Draft, []error) {
	var wrong []error
	note := func(location string, err error) { wrong = append(wrong, fault.Each(location, err)...) }

	expire, err := parseExpire(b.Expire)
	note("body.expire", err)
	_, err = ParseExpect(b.Expect)
	note("body.expect", err)
	note("body.at", checkAt(b.At, in.Now))
	priority, err := jobs.ParsePriority(b.Priority)
	note("body.priority", err)
	frozen, bad := in.bind(b)
	picked, err := in.pick(b.On, len(bad) == 0 && Checks(frozen))
	note("body.on", err)
	hosts := picked.Hosts
	wrong = append(wrong, bad...)
	if len(bad) == 0 {
		note("body.on", checkHosts(frozen, hosts))
		wrong = append(wrong, checkNeeds(frozen.Limits(), hosts, in.Scene.Stock)...)
	}
	note("body.supersedes", checkKey(b.Supersedes))
	if b.Rollout != nil && b.SkipClosed {
		wrong = append(wrong, fault.At("body.skip_closed", "a rule and waves count all hosts that are "+
			"selected: leave those out by the selector"))
	}
	rollout, blobs, hosts, bad := in.rollOut(b.Rollout, hosts)
	wrong = append(wrong, bad...)
	if len(wrong) > 0 {
		return Draft{}, wrong
	}
	frozen.Disruptive = frozen.Disruptive || b.Disruptive
	spec, err := specOf(frozen)
	if err != nil {
		return Draft{}, fault.Each("body.runbook", err)
	}
	spec.On, spec.Expire, spec.Rollout = b.On, expire, rollout
	spec.Priority, spec.Supersedes = priority, b.Supersedes
	spec.Timing = timing(frozen, b)
	p := in.Draft(jobs.Task{ID: jobs.TaskID(b.ID), At: jobs.MicrosOf(b.At.Time), Spec: spec}, hosts)
	if why := strings.TrimSpace(b.OverrideFreeze); why != "" {
		p.Task.Spec.Override = in.Operator + ": " + why
	}
	p.Blobs, p.Secrets = append(frozen.Blobs(), blobs...), frozen.Values.Plain
	p.Frozen = frozen
	p.LeftOut, p.Held = stock.LeftOut(picked), in.Scene.WhyAside(picked.Drained)
	return p, nil
}

// specOf returns the spec of a task as far as its frozen runbook decides it.
func specOf(f scripts.Frozen) (jobs.Spec, error) {
	action, err := json.Marshal(f)
	return jobs.Spec{Runbook: f.Runbook, Timeout: jobs.AttemptTimeout(longest(f)),
		Expire: jobs.DefaultExpire, Repeatable: f.Repeatable, Needs: f.Limits(), Retry: policy(f),
		Action: action, Terms: jobs.Terms{Priority: jobs.PriorityNormal, Disruptive: f.Disruptive,
			ProveGroup: f.ProveGroup, Gates: f.Gated(), Ran: ranOf(f)},
		Timing: timing(f, api.Submit{})}, err
}

// Draft completes a task by the operator, the time and the hosts.
func (in Setting) Draft(t jobs.Task, hosts []fleet.Host) Draft {
	t.Spec.Operator, t.Spec.Proven = in.Operator, in.Proven
	t.Spec.Inventory, t.Spec.Created = in.Scene.Stock.Version, jobs.MicrosOf(in.Now)
	t.Guarded = guarded(t.Spec, hosts, in.Scene.Stock.Limits())
	p := Draft{Task: t, All: in.Scene.All}
	p.Keep(hosts)
	return p
}

// Keep makes hosts those of the draft.
func (p *Draft) Keep(hosts []fleet.Host) {
	p.Picked, p.Names, p.Task.Total = hosts, slices.Grow([]string(nil), len(hosts)), len(hosts)
	p.Hosts = map[string][]string{}
	for _, h := range hosts {
		p.Hosts[h.Zone] = append(p.Hosts[h.Zone], h.Name)
		p.Names = append(p.Names, h.Name)
	}
}

// Kin returns the other members of the redundancy groups of the hosts of a disruptive task: nodes
// write markers on them.
func (p *Draft) Kin() (kin []fleet.Host) {
	if !p.Task.Spec.Disruptive || p.All == nil {
		return nil
	}
	groups, own := map[string]bool{}, map[string]bool{}
	for _, h := range p.Picked {
		groups[h.Group], own[h.Name] = h.Group != "", true
	}
	for _, h := range p.All.Hosts() {
		if groups[h.Group] && !own[h.Name] {
			kin = append(kin, h)
		}
	}
	return kin
}

func parseExpire(text string) (time.Duration, error) {
	if text == "" {
		return jobs.DefaultExpire, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < expireMin || d > horizon {
		return 0, fmt.Errorf("%q: want a time from 1s to 720h, such as 90m or 8h", wording.Clip(text))
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

func (in Setting) bind(b api.Submit) (scripts.Frozen, []error) {
	runbook, err := in.Catalog.Lookup(b.Runbook)
	if err != nil {
		return scripts.Frozen{}, fault.Each("body.runbook", err)
	}
	values, err := runbook.BindGiven(scripts.Given{Args: b.Args, Secrets: secretTexts(b.Secrets),
		Files: b.Files, Stored: in.Stored, Unsaid: in.Foretold})
	if err != nil {
		return scripts.Frozen{}, fault.Each("body.args", err)
	}
	frozen, err := runbook.Freeze(values).Only(b.Only)
	if err != nil {
		return scripts.Frozen{}, fault.Each("body.only", err)
	}
	return frozen, nil
}

// checkHosts reports the hosts for which a step cannot be made, because they lack, say, a label
// that the runbook needs.
func checkHosts(f scripts.Frozen, hosts []fleet.Host) error {
	var errs []error
	var names []string
	if len(hosts) > 1 && alike(f) && f.Check(hosts[0]) == nil {
		return nil
	}
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
			wording.ClipList(fleet.Fold(names))))
	}
	return errors.Join(errs...)
}

// alike reports whether the steps are the same on each host, as far as that is plain: they only run
// commands or store files, and no text in them, also no argument, has the beginning of the names by
// which steps ask about their host.
func alike(f scripts.Frozen) bool {
	for _, s := range f.Steps {
		if s.Kind != scripts.KindRun && s.Kind != scripts.KindCheck && s.Kind != scripts.KindUpload {
			return false
		}
	}
	text, err := json.Marshal(f)
	return err == nil && !bytes.Contains(text, []byte("host."))
}

// longest returns the bound of the longest step.
func longest(f scripts.Frozen) time.Duration {
	var d time.Duration
	for _, s := range f.Steps {
		d = max(d, s.Timeout)
	}
	return d
}

// timing takes the bound of an attempt for its usual time where neither the runbook nor the
// request says that: it is never too short. New has found the request right.
func timing(f scripts.Frozen, b api.Submit) jobs.Timing {
	said, _ := ParseExpect(b.Expect)
	said = cmp.Or(said, f.Expect)
	return jobs.Timing{Window: f.Window || b.Window, Expect: cmp.Or(said, f.Timeout),
		Reserve: f.Reserve, Unsaid: said == 0}
}

// expectMax bounds how long a task may be said to take.
const expectMax = 168 * time.Hour

// ParseExpect reads how long a task is expected to take; empty: nobody says it.
func ParseExpect(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > expectMax {
		return 0, fmt.Errorf("%q: want a time from 1s to 168h, such as 90s or 20m", wording.Clip(text))
	}
	return d, nil
}

func policy(f scripts.Frozen) jobs.Policy {
	if f.Retry.Submit < 1 {
		return jobs.DefaultPolicy()
	}
	return jobs.Policy{Tries: f.Retry.Submit, Delay: f.Retry.Delay}
}

// Answer shows a draft as the answer to its request.
func (p Draft) Answer(durable string) api.Submitted {
	s := p.Task.Spec
	return api.Submitted{Durable: durable, LeftOut: p.LeftOut, Fences: p.Fences, Windows: p.Windows,
		Frozen: p.Held,
		TaskInfo: jobs.TaskInfo{
			Task: p.Task.ID, Runbook: s.Runbook, On: s.On, Operator: s.Operator, Proven: s.Proven,
			Total: p.Task.Total, Outcomes: jobs.NewCounts(), Zones: slices.Sorted(maps.Keys(p.Hosts)),
			Inventory: s.Inventory, Terms: s.Terms, Orders: jobs.Orders{Rollout: rolling(s.Rollout)},
			Span: jobs.Span{Submitted: jobs.TimeOf(s.Created)}}}
}

// secretTexts returns the secrets of a submit in a form that nothing prints.
func secretTexts(given map[string]string) map[string]seal.Text {
	texts := make(map[string]seal.Text, len(given))
	for name, text := range given {
		texts[name] = seal.Text(text)
	}
	return texts
}
