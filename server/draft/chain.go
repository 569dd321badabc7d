package draft

import (
	"cmp"
	"fmt"
	"reflect"

	"muster/api"
	"muster/jobs"
	"muster/scripts"
	"muster/server/fault"
)

// NewChain is New for a submit that may become several tasks. The draft is that of
// the task that does the work; the chain is nil if there are no others. chance makes ids.
func NewChain(b api.Submit, in Setting, chance func() uint16) (Draft, *jobs.Chain, []error) {
	if !Chained(b) {
		p, wrong := New(b, in)
		return p, nil, wrong
	}
	alone := b
	alone.Rollout = nil
	p, wrong := New(alone, in)
	runbook, err := in.Catalog.Lookup(b.Runbook)
	if err != nil {
		return p, nil, wrong // which says so already
	}
	wrong = append(wrong, checkChained(b, runbook)...)
	if len(p.Names) == 0 {
		return p, nil, wrong
	}
	first := chance()
	id := func(n uint16) jobs.TaskID { return jobs.NewTaskID(in.Now, first+n) }
	c := jobs.Chain{ID: p.Task.ID, Runbook: b.Runbook, On: b.On, Operator: in.Operator,
		Proven: in.Proven, Created: jobs.MicrosOf(in.Now), At: p.Task.At, Hosts: p.Names}
	if c.ID == "" {
		c.ID = id(0)
	}
	var bad []error
	c.Budget, bad = budget(b, len(p.Names))
	wrong = append(wrong, bad...)
	c.Do = jobs.Link{Task: c.ID, Spec: p.Task.Spec}
	if b.Rollout.Staged && runbook.Staging != "" {
		c.Do.Task = id(1)
		c.Stage, bad = in.stageOf(b, runbook, c)
		wrong = append(wrong, bad...)
	}
	c.Do.Spec.Chain = c.ID
	c.Undo, bad = in.undoOf(runbook, c, p, id(2))
	return p, &c, append(wrong, bad...)
}

// Chained reports whether a submit is to become several tasks.
func Chained(b api.Submit) bool {
	return b.Rollout != nil && b.Rollout.ChainAsk != (jobs.ChainAsk{})
}

// checkChained reports what does not go with a chain.
func checkChained(b api.Submit, runbook *scripts.Runbook) (wrong []error) {
	if _, said := b.Args[runbook.Staging]; said && b.Rollout.Staged {
		wrong = append(wrong, fault.At("body.args", "argument %q is set by the chain itself: leave it "+
			"out", runbook.Staging))
	}
	if b.Rollout.Staged && runbook.Staging == "" {
		wrong = append(wrong, fault.At("body.rollout.staged", "runbook %s cannot be prepared alone: it "+
			"has no staging", b.Runbook))
	}
	if b.Rollout.RollBack && runbook.Undo == "" {
		wrong = append(wrong, fault.At("body.rollout.roll_back", "nothing takes runbook %s back: it has "+
			"no undo", b.Runbook))
	}
	rest := *b.Rollout
	rest.MaxFailed, rest.UnreachableOK, rest.ChainAsk = "", false, jobs.ChainAsk{}
	if !reflect.ValueOf(rest).IsZero() {
		wrong = append(wrong, fault.At("body.rollout", "waves and a breaker let a task go out by "+
			"and by, and a chain at one moment: of the rules only max_failed and unreachable_ok go "+
			"with it"))
	}
	if b.Only != "" {
		wrong = append(wrong, fault.At("body.only", "a dry run on the hosts changes nothing, so nothing "+
			"follows it: leave the chain out"))
	}
	if len(b.Secrets) > 0 {
		wrong = append(wrong, fault.At("body.secrets", "a secret is sealed for one task, and a chain "+
			"has several: submit it without staged and roll_back"))
	}
	if b.Window || runbook.Window {
		wrong = append(wrong, fault.At("body.rollout", "each host has a window of its own, and a chain "+
			"one moment for all: submit it without, for the hosts of one customer"))
	}
	return wrong
}

// budget returns how many hosts may fail: none, unless the submit says it.
func budget(b api.Submit, total int) (jobs.Budget, []error) {
	ask := jobs.RolloutAsk{MaxFailed: cmp.Or(b.Rollout.MaxFailed, "0"),
		UnreachableOK: b.Rollout.UnreachableOK}
	r, bad := ask.Resolve(total)
	var wrong []error
	for _, m := range bad {
		wrong = append(wrong, fault.Each("body.rollout."+m.Field, m.Err)...)
	}
	out := jobs.Budget{UnreachableOK: ask.UnreachableOK, RollBack: b.Rollout.RollBack}
	if r.MaxFailed != nil {
		out.MaxFailed = *r.MaxFailed
	}
	return out, wrong
}

// stageOf returns the task that prepares another.
func (in Setting) stageOf(b api.Submit, runbook *scripts.Runbook, c jobs.Chain) (*jobs.Link,
	[]error) {
	args := map[string]string{runbook.Staging: "true"}
	for name, value := range b.Args {
		args[name] = value
	}
	b.Args = args
	frozen, wrong := in.bind(b)
	if len(wrong) > 0 {
		return nil, nil // as they are wrong for the task itself
	}
	spec, err := specOf(frozen)
	spec.On, spec.Expire, spec.Priority = b.On, c.Do.Spec.Expire, c.Do.Spec.Priority
	spec.Disruptive, spec.Override, spec.Chain = c.Do.Spec.Disruptive, c.Do.Spec.Override, c.ID
	spec.Reason = fmt.Sprintf("prepares task %s", c.Do.Task)
	return &jobs.Link{Task: c.ID, Spec: spec}, fault.Each("body.runbook", err)
}

// undoOf returns the task that takes another back; nil: there is none.
func (in Setting) undoOf(runbook *scripts.Runbook, c jobs.Chain, p Draft, id jobs.TaskID) (
	*jobs.Link, []error) {
	const at = "body.rollout.roll_back"
	frozen, err := in.Catalog.Takeback(runbook, string(c.Do.Task))
	if err != nil {
		return nil, fault.Each(at, err)
	}
	if frozen == nil {
		return nil, nil
	}
	wrong := fault.Each(at, checkHosts(*frozen, p.Picked))
	wrong = append(wrong, checkNeeds(frozen.Limits(), p.Picked, in.Scene.Stock)...)
	spec, err := specOf(*frozen)
	spec.Priority, spec.Override, spec.Chain = c.Do.Spec.Priority, c.Do.Spec.Override, c.ID
	spec.Reason = fmt.Sprintf("takes back task %s", c.Do.Task)
	return &jobs.Link{Task: id, Spec: spec}, append(wrong, fault.Each(at, err)...)
}
