package attempt

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"muster/jobs"
	"muster/scripts"
	"muster/windows"
	"muster/worker/agreed"
	"muster/worker/verdict"
)

// This file decides whether a job may begin, and go on, at this time (design §8). It is
// asked right after the take, before anybody connects to the host, and again before each
// step that disturbs it: a window may have been changed or frozen, and time passes.

// A question is all that a decision about a start is made of.
type question struct {
	agreed.Reading
	place   windows.Place
	work    windows.Work
	clock   string // why the clock of this machine is not to be trusted; empty: it is
	running bool   // a step that disturbs the host was done before this one
	undoing bool   // and what it did is being undone
}

// A ruling is whether something may start.
type ruling struct {
	ok    bool
	now   time.Time // when it was made
	end   time.Time // until when it is open at least; zero: there is no such end
	over  string    // ok, although: what somebody should know
	until time.Time // not ok: when it may start; zero: nobody knows
	soon  bool      // not ok: it is to be asked again soon
	why   string    // not ok
	group bool      // not ok because of the group of the host
}

// rule decides. What runs is never stopped by a freeze, and by the end of its window
// only if the window says so.
func rule(q question) ruling {
	switch {
	case q.running && !q.work.Window:
		return ruling{ok: true}
	case q.Err != nil && (!q.running || q.Book == nil):
		return ruling{soon: true, why: "what is agreed about times is not known: " + q.Err.Error()}
	case q.running:
		return ruleRunning(q)
	case q.work.Window && q.clock != "":
		return ruling{soon: true, why: q.clock}
	}
	v := q.Book.Admit(q.place, q.Now, q.work)
	return ruling{ok: v.OK, end: v.Until, until: v.Next, why: v.Why}
}

func ruleRunning(q question) ruling {
	q.work.Override = "it runs"
	v := q.Book.Admit(q.place, q.Now, q.work)
	switch {
	case v.OK:
		return ruling{ok: true, end: v.Until}
	case !q.undoing && q.Book.AtEnd(q.place, q.work.Runbook) == windows.StopAtSafePoint:
		return ruling{until: v.Next, why: "stopped at a safe point: " + v.Why}
	}
	return ruling{ok: true, over: v.Why}
}

// clockDoubt says why windows must not be read by the clock of this machine.
func clockDoubt(skew time.Duration, ntp error, required bool) string {
	switch {
	case skew.Abs() > jobs.SkewMax:
		return fmt.Sprintf("the clock of this node is %s off that of Redis: at most %s", skew.Abs().Round(
			time.Millisecond), jobs.SkewMax)
	case required && ntp != nil:
		return "the clock of this node is not kept right by NTP (" + ntp.Error() +
			"), and windows.require_ntp is set"
	}
	return ""
}

// An admission rules about the steps of one attempt.
type admission struct {
	at       *Attempt
	ruled    time.Duration      // when it was looked whether the step in hand may start now
	outside  *verdict.Hindrance // the step in hand must not start: the host is only asked about it
	overtime sync.Once
}

// rule asks whether the step in hand may start now. It asks nothing of tasks in whose
// way no time can be: what runs, and needs no window.
func (w *admission) rule(ctx context.Context) ruling {
	spec := w.at.plan.Spec
	q := question{running: w.at.disturbed(), undoing: w.at.memory.Failed != nil,
		work: windows.Work{Runbook: spec.Runbook, Window: spec.Window, Reserve: spec.Reserve,
			Override: spec.Override}}
	if q.running && !q.work.Window || w.at.grant.Host == nil {
		return ruling{ok: true}
	}
	q.place = jobs.Place(*w.at.grant.Host)
	q.Reading = w.at.env.Agreed.Current(ctx, q.place)
	if q.work.Window {
		q.clock = clockDoubt(q.Skew, w.ntp(), w.at.env.Config.RequireNTP)
		takes, err := w.at.env.Agreed.Takes(ctx, jobs.EstimateField(spec.Work(), *w.at.grant.Host))
		if err != nil && q.Err == nil {
			q.Err = err
		}
		q.work.Estimate = max(cmp.Or(takes, spec.Expect)-w.atWork(), 0)
	}
	r := rule(q)
	if r.over != "" {
		w.alertOver(ctx, r.over)
	}
	r.now = q.Now
	return r
}

// atWork is for how long steps have been running: what is done of the work counts no more.
// To get to a slow host is no part of it.
func (w *admission) atWork() time.Duration {
	if w.at.timed.stepped == 0 {
		return 0
	}
	return w.at.env.Clock() - w.at.timed.stepped
}

// admit rules about a job before its host is called. What an earlier attempt may have
// begun is asked of the host first.
func (w *admission) admit(ctx context.Context) ruling {
	// Freezes do not hold for what has begun.
	begun := !w.at.plan.Spec.Window && (w.at.grant.Step > 0 || w.at.disturbed())
	switch {
	case begun, verdict.MayHaveRun(w.at.grant):
		return ruling{ok: true}
	case w.at.disturbed():
		return w.lookAfter(ctx)
	case w.at.memory.Probe != nil:
		return ruling{ok: true} // it has begun, and is looked after
	}
	return w.rule(ctx)
}

// lookAfter is about a job that is half way: it is gone on with in any case.
func (w *admission) lookAfter(ctx context.Context) ruling {
	r := ruling{ok: true, now: w.at.env.Agreed.Current(ctx, jobs.Place(*w.at.grant.Host)).Now}
	left := w.opensFor(ctx)
	if left <= 0 {
		w.alertOver(ctx, overText)
		return r
	}
	r.end = r.now.Add(left)
	return r
}

// admitStep rules about the step in hand, on a host to which there is a connection.
func (w *admission) admitStep(ctx context.Context, action scripts.Action) ruling {
	if w.at.memory.Failed != nil || w.at.memory.Probe != nil {
		return ruling{ok: true} // what failed is brought back at any time, what began is seen to its end
	}
	again := verdict.MayHaveRun(w.at.grant) &&
		w.at.step == 0 // which was not asked before the host was called
	if w.at.plan.Spec.Window && w.at.disturbs(action) || again {
		return w.rule(ctx)
	}
	return ruling{ok: true}
}

// hindrance returns why a step must not start by a ruling; nil if it may.
func (w *admission) hindrance(action scripts.Action, r ruling) *verdict.Hindrance {
	if r.ok {
		return nil
	}
	return &verdict.Hindrance{Why: r.why, Disturbs: w.at.disturbs(action),
		Ruled: &verdict.Ruled{Until: r.until, Soon: r.soon, Group: r.group}}
}

// defers returns a job that waits until a ruling lets its step start.
func (w *admission) defers(action scripts.Action, r ruling) jobs.Result {
	return w.Defer(w.at.with(action), *w.hindrance(action, r))
}

// Defer returns the result of a job that waits until its step may begin.
func (w *admission) Defer(f verdict.Evidence, h verdict.Hindrance) jobs.Result {
	w.at.group.held = w.at.group.held || h.Ruled.Group
	return w.at.fresh(f).NotStarted(h)
}

// ntp is why the clock is not known to be kept right; nil: it is.
func (w *admission) ntp() error {
	if w.at.env.Synchronised == nil {
		return nil
	}
	return w.at.env.Synchronised()
}

// mayStartNow is mayStart, if the time is right. If it is not the host may still be asked
// what became of the step.
//
// To mark the members of a group, and to get a go from a queue that is away, may take
// longer than the window is open: then the time is looked at once more.
func (w *admission) mayStartNow(ctx context.Context, action scripts.Action) (look bool,
	end *Ending) {
	w.outside = nil
	w.ruled = w.at.env.Clock()
	r := w.admitStep(ctx, action)
	if r.ok {
		r = w.at.group.claim(w.at.halt.ctx, action)
	}
	if end = w.keepOut(action, r); end != nil {
		return false, end
	}
	look, end = clearance{w.at}.mayStart(ctx, action)
	if end == nil && !look && r.ok && w.Old() {
		w.ruled = w.at.env.Clock()
		end = w.keepOut(action, w.admitStep(ctx, action))
	}
	return look || w.outside != nil, end
}

// Old reports whether the ruling about the step in hand is too old to rely on.
func (w *admission) Old() bool { return w.at.env.Clock()-w.ruled > agreed.AgeMax }

// Admit decides about the step in hand, on a host to which there is a connection.
func (w *admission) Admit(ctx context.Context, action scripts.Action) *verdict.Hindrance {
	return w.hindrance(action, w.admitStep(ctx, action))
}

// AdmitAgain decides about a step that spans several attempts and may have begun: an earlier
// attempt got its go, and may have died before it used that.
func (w *admission) AdmitAgain(ctx context.Context, action scripts.Action) *verdict.Hindrance {
	first := w.at.step == 0 && !w.at.disturbed() // of which not even freezes know that it has begun
	if w.at.memory.Failed == nil && (w.at.plan.Spec.Window && w.at.disturbs(action) || first) {
		w.ruled = w.at.env.Clock()
		return w.hindrance(action, w.rule(ctx))
	}
	return nil
}

// keepOut returns the end of an attempt whose step must not start now; nil if the step may start,
// or if its host is only asked about it.
func (w *admission) keepOut(action scripts.Action, r ruling) *Ending {
	switch {
	case r.ok:
		return nil
	case !w.at.records().asks(action):
		return &Ending{Result: w.defers(action, r)}
	}
	w.outside = w.hindrance(action, r)
	return nil
}
