package attempt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/jobs"
	"muster/trust"
	"muster/worker/verdict"
	"muster/worker/warden"
)

// An entry decides whether an attempt can do anything at all, before it connects to a host.
type entry struct{ at *Attempt }

// refused returns the result of an attempt that starts no step. If it may start one, the secrets of
// the job are open afterwards.
func (e entry) refused(ctx context.Context) (r jobs.Result, refused bool) {
	if r, doubted := e.doubted(ctx); doubted {
		return r, true
	}
	if r, unfit := e.unfit(); unfit {
		return r, true
	}
	if err := e.unseal(ctx); err != nil {
		return e.sealedEnd(err), true
	}
	return jobs.Result{}, false
}

// doubtPause is the time for which a job is kept whose order could not be examined, before others
// may try.
const doubtPause = 5 * time.Second

// doubted returns the result of a job whose order does not hold. If nobody could examine the order,
// the job is given back as it came, without a proof of this node.
func (e entry) doubted(ctx context.Context) (r jobs.Result, doubted bool) {
	err := e.trusted(ctx)
	if err == nil {
		return jobs.Result{}, false
	}
	if errors.As(err, new(*warden.Doubt)) {
		// The memory of earlier attempts may be invented, so it decides nothing, and the host counts
		// as half way.
		e.at.memory = verdict.Memory{Disturbed: e.at.grant.Step > 0 || e.at.grant.Saved != ""}
		f, g := e.at.evidence(), e.at.grant
		words := "; no further step was started"
		if g.Mode == jobs.ModeFresh && !e.at.memory.Disturbed {
			words = "; nothing was touched"
		}
		return f.Doubt(f.End(jobs.Failed, jobs.ClassOperator, err.Error()+words)), true
	}
	if early := new(trust.EarlyError); errors.As(err, &early) {
		f := e.at.evidence()
		return f.NotStarted(verdict.Hindrance{Ruled: &verdict.Ruled{Until: early.Begins},
			Why: early.Error()}), true
	}
	e.at.logger().Error("the order of a job cannot be examined, so it is given back", "why", err)
	timer := time.NewTimer(doubtPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return verdict.Untouched(e.at.grant, "its order could not be examined: "+err.Error()), true
}

// trusted returns an error unless those whom this node trusts have ordered the job.
func (e entry) trusted(ctx context.Context) error {
	a := e.at
	if a.env.Trust == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.env.Config.Call)
	defer cancel()
	err := a.env.Trust.Check(ctx, a.zone, a.grant, a.plan.Spec)
	a.plan.Proven = err == nil
	return err
}

// unfit returns the result of a job that needs no call to its host, because no step can start.
func (e entry) unfit() (r jobs.Result, unfit bool) {
	a := e.at
	f, g := a.evidence(), a.grant
	if g.Mode == jobs.ModeLost && !e.hostKnows() && !a.plan.safe(a.step) {
		if g.Host != nil && a.plan.Err == nil {
			// If the step cannot be made, nobody knows whether it may run twice.
			f.Action, _ = a.action(g.Step)
		}
		return verdict.Lost(f), true
	}
	switch _, enough := verdict.Bound(verdict.BoundMin, verdict.Deadline(0, g.Timeout)); {
	case a.plan.Err != nil:
		return f.Doubt(f.End(jobs.Failed, jobs.ClassOperator, a.plan.Err.Error())), true
	case g.Host == nil:
		return f.Doubt(f.End(jobs.Failed, jobs.ClassOperator, fmt.Sprintf(
			"host is not in inventory version %s", a.plan.Spec.Inventory))), true
	case g.Step < 0 || g.Step >= len(a.plan.Book.Steps):
		return f.End(jobs.Failed, jobs.ClassOperator, fmt.Sprintf("the job is at step %d of a "+
			"runbook with %d steps: a mistake in muster", g.Step+1, len(a.plan.Book.Steps))), true
	case !enough:
		return f.End(jobs.Failed, jobs.ClassOperator, fmt.Sprintf("the task allows an attempt %s, "+
			"which is too short to start a step", g.Timeout)), true
	}
	if _, ok := verdict.Bound(verdict.BoundMin, a.lease.left()); !ok {
		return verdict.Untouched(g, "too little time was left when the worker got it"), true
	}
	return jobs.Result{}, false
}

// hostKnows reports whether the host of a lost job may know how the step ended, or itself refuses
// any further start of the step.
func (e entry) hostKnows() bool {
	g := e.at.grant
	if g.Host == nil || e.at.plan.Err != nil {
		return false
	}
	action, err := e.at.action(g.Step)
	return err == nil && verdict.Refuses(g.Host, action)
}
