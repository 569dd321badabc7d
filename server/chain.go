package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/scripts"
	"muster/server/stock"
)

// makeChain is makePlan for a submit that may be one of several tasks: the plan is that of
// the one that is meant, the chain nil if there are no others.
func (s *Server) makeChain(b api.Submit, in setting) (plan, *jobs.Chain, []error) {
	if !chained(b) {
		p, wrong := makePlan(b, in)
		return p, nil, wrong
	}
	alone := b
	alone.Rollout = nil
	p, wrong := makePlan(alone, in)
	runbook, err := in.catalog.Lookup(b.Runbook)
	if err != nil {
		return p, nil, wrong // which says so already
	}
	wrong = append(wrong, checkChained(b, runbook)...)
	if len(p.names) == 0 {
		return p, nil, wrong
	}
	chance := s.chance()
	id := func(n uint16) jobs.TaskID { return jobs.NewTaskID(in.now, chance+n) }
	c := jobs.Chain{ID: p.task.ID, Runbook: b.Runbook, On: b.On, Operator: in.operator,
		Proven: in.proven, Created: jobs.MicrosOf(in.now), At: p.task.At, Hosts: p.names}
	if c.ID == "" {
		c.ID = id(0)
	}
	var bad []error
	c.Budget, bad = budget(b, len(p.names))
	wrong = append(wrong, bad...)
	c.Do = jobs.Link{Task: c.ID, Spec: p.task.Spec}
	if b.Rollout.Staged && runbook.Staging != "" {
		c.Do.Task = id(1)
		c.Stage, bad = in.stageOf(b, runbook, c)
		wrong = append(wrong, bad...)
	}
	c.Do.Spec.Chain = c.ID
	c.Undo, bad = in.undoOf(runbook, c, p, id(2))
	return p, &c, append(wrong, bad...)
}

// chained tells whether a submit is to become several tasks.
func chained(b api.Submit) bool {
	return b.Rollout != nil && b.Rollout.ChainAsk != (jobs.ChainAsk{})
}

// checkChained tells what does not go with a chain.
func checkChained(b api.Submit, runbook *scripts.Runbook) (wrong []error) {
	if _, said := b.Args[runbook.Staging]; said && b.Rollout.Staged {
		wrong = append(wrong, mistake("body.args", "argument %q is set by the chain itself: leave it out",
			runbook.Staging))
	}
	if b.Rollout.Staged && runbook.Staging == "" {
		wrong = append(wrong, mistake("body.rollout.staged", "runbook %s cannot be prepared alone: it "+
			"has no staging", b.Runbook))
	}
	if b.Rollout.RollBack && runbook.Undo == "" {
		wrong = append(wrong, mistake("body.rollout.roll_back", "nothing takes runbook %s back: it has "+
			"no undo", b.Runbook))
	}
	rest := *b.Rollout
	rest.MaxFailed, rest.UnreachableOK, rest.ChainAsk = "", false, jobs.ChainAsk{}
	if !reflect.ValueOf(rest).IsZero() {
		wrong = append(wrong, mistake("body.rollout", "waves and a breaker let a task go out by "+
			"and by, and a chain at one moment: of the rules only max_failed and unreachable_ok go "+
			"with it"))
	}
	if b.Only != "" {
		wrong = append(wrong, mistake("body.only", "a dry run on the hosts changes nothing, so nothing "+
			"follows it: leave the chain out"))
	}
	if len(b.Secrets) > 0 {
		wrong = append(wrong, mistake("body.secrets", "a secret is sealed for one task, and a chain has "+
			"several: submit it without staged and roll_back"))
	}
	if b.Window || runbook.Window {
		wrong = append(wrong, mistake("body.rollout", "each host has a window of its own, and a chain "+
			"one moment for all: submit it without, for the hosts of one customer"))
	}
	return wrong
}

// budget is how many may fail; without a word none.
func budget(b api.Submit, total int) (jobs.Budget, []error) {
	ask := jobs.RolloutAsk{MaxFailed: cmp.Or(b.Rollout.MaxFailed, "0"),
		UnreachableOK: b.Rollout.UnreachableOK}
	r, bad := ask.Resolve(total)
	var wrong []error
	for _, m := range bad {
		wrong = append(wrong, mistakes("body.rollout."+m.Field, m.Err)...)
	}
	out := jobs.Budget{UnreachableOK: ask.UnreachableOK, RollBack: b.Rollout.RollBack}
	if r.MaxFailed != nil {
		out.MaxFailed = *r.MaxFailed
	}
	return out, wrong
}

// stageOf is the task that prepares another.
func (in setting) stageOf(b api.Submit, runbook *scripts.Runbook, c jobs.Chain) (*jobs.Link,
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
	return &jobs.Link{Task: c.ID, Spec: spec}, mistakes("body.runbook", err)
}

// undoOf is the task that takes another back; nil: there is none.
func (in setting) undoOf(runbook *scripts.Runbook, c jobs.Chain, p plan, id jobs.TaskID) (
	*jobs.Link, []error) {
	const at = "body.rollout.roll_back"
	frozen, err := in.catalog.Takeback(runbook, string(c.Do.Task))
	if err != nil {
		return nil, mistakes(at, err)
	}
	if frozen == nil {
		return nil, nil
	}
	wrong := mistakes(at, checkHosts(*frozen, p.picked))
	wrong = append(wrong, checkNeeds(frozen.Limits(), p.picked, in.Stock)...)
	spec, err := specOf(*frozen)
	spec.Priority, spec.Override, spec.Chain = c.Do.Spec.Priority, c.Do.Spec.Override, c.ID
	spec.Reason = fmt.Sprintf("takes back task %s", c.Do.Task)
	return &jobs.Link{Task: id, Spec: spec}, append(wrong, mistakes(at, err)...)
}

// acceptChain keeps a chain and submits its first task. Who dies in between has kept it,
// and another server goes on.
func (s *Server) acceptChain(ctx context.Context, b api.Submit, c jobs.Chain, p plan) (
	*submitOutput, string, error) {
	if b.DryRun {
		out := s.dryRun(p)
		out.Body.Follows = infoOf(c, jobs.ChainSeen{})
		return out, "", nil
	}
	kept, err := s.queue.Hub.Chains.SaveChain(ctx, c)
	if err != nil {
		return nil, resultFailed, away(fmt.Sprintf("%s; submit it again with id %s", err, c.ID))
	}
	if kept.Runbook != c.Runbook || kept.On != c.On || kept.Operator != c.Operator {
		return nil, resultRefused, conflict(c.ID, "it is a chain of "+kept.Runbook+" on "+
			clip(kept.On))
	}
	if err := s.advanceChain(ctx, c.ID); err != nil {
		return nil, resultFailed, away(fmt.Sprintf("%s; it is kept, and goes on when Redis is back: "+
			"submit it again with id %s to hear of it", err, c.ID))
	}
	info, err := s.chainInfo(ctx, c.ID)
	if err != nil {
		return nil, resultFailed, problem(err)
	}
	p.task.ID = c.ID
	p.task.Spec.Chain = c.ID
	out := &submitOutput{http.StatusCreated, p.answer(s.durable)}
	if t, err := s.queue.Read.Tasks.Task(ctx, c.ID); err == nil {
		out.Body.TaskInfo = t
	}
	out.Body.Follows = &info
	return out, resultAccepted, nil
}

// putLink submits a task of a chain, or goes on with what another server left half way.
// gone are those hosts that are in the inventory no more.
func (s *Server) putLink(ctx context.Context, c jobs.Chain, l jobs.Link, names []string) (
	gone []string, err error) {
	v, err := s.look.Scene(ctx, "")
	if err != nil {
		return nil, err
	}
	if v.Stock == nil {
		return nil, stock.ErrNone
	}
	hosts, gone := v.Stock.Find(names)
	if len(hosts) == 0 {
		return gone, fmt.Errorf("its hosts are in the inventory no more: %s: %w",
			brief(fleet.Fold(gone)), errChainBroken)
	}
	var frozen scripts.Frozen
	if err := json.Unmarshal(l.Spec.Action, &frozen); err != nil {
		return gone, fmt.Errorf("%w: %w", err, errChainBroken)
	}
	t := jobs.Task{ID: l.Task, Spec: l.Spec}
	if l.Spec.On == "" {
		t.Spec.On = fleet.Fold(names)
	}
	if l.Task == c.Do.Task {
		t.At = c.At
	}
	t.Spec.After = t.At
	p := setting{Scene: v, operator: c.Operator, proven: c.Proven, now: s.now()}.plan(t, hosts)
	p.blobs = frozen.Blobs()
	return gone, s.putOnce(ctx, &p, false)
}
