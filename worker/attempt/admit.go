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

// This file decides whether a job may begin, and continue, at this time (design §8). An attempt
// asks right after the take, before it connects to the host, and again before each step that
// disturbs the host: meanwhile somebody may have changed or frozen the window, and time passes.

// A question holds all that decides whether a step may start.
type question struct {
	agreed.Reading
	place   windows.Place
	work    windows.Work
	clock   string // why nobody may trust the clock of this machine; empty: it is right
	running bool   // an earlier step disturbed the host
	undoing bool   // on_fail is undoing the work of that step
}

// A ruling says whether a step may start.
type ruling struct {
	ok    bool
	now   time.Time // the time of the ruling
	end   time.Time // the window is open at least until then; zero: it has no such end
	over  string    // if ok: why somebody should know about it all the same
	until time.Time // if not ok: when the step may start; zero: nobody knows
	soon  bool      // if not ok: the queue should offer the job again soon
	why   string    // if not ok: the reason
	group bool      // if not ok: the group of the host is the reason
}

// rule decides. A freeze never stops a running job, and the end of its window stops it only if the
// window says so.
func rule(q question) ruling {
	switch {
	case q.running && !q.work.Window:
		return ruling{ok: true}
	case q.Err != nil && (!q.running || q.Book == nil):
		return ruling{soon: true, why: "the timetable is not known: " + q.Err.Error()}
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
	stops := !q.undoing && q.Book.AtEnd(q.place, q.work.Runbook) == windows.StopAtSafePoint
	if stops && q.clock != "" { // nobody knows whether its window has ended
		return ruling{soon: true, why: "stopped at a safe point: " + q.clock}
	}
	v := q.Book.Admit(q.place, q.Now, q.work)
	switch {
	case v.OK:
		return ruling{ok: true, end: v.Until}
	case stops:
		return ruling{until: v.Next, why: "stopped at a safe point: " + v.Why}
	}
	return ruling{ok: true, over: v.Why}
}

// clockDoubt returns why this machine must not decide about windows by its clock; empty if it may.
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
	ruled    time.Duration      // the time of the last ruling about the step in hand
	outside  *verdict.Hindrance // why the attempt only asks the host about the step in hand
	overtime sync.Once
}

// rule returns whether the step in hand may start now. A running job that needs no window may
// always continue, so rule reads no timetable for it.
func (w *admission) rule(ctx context.Context) ruling {
	spec := w.at.plan.Spec
	q := question{running: w.at.memory.Unfinished(), undoing: w.at.memory.Failed != nil,
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

// atWork returns the time since the first step of this attempt began: the estimate counts only the
// rest of the work. The time to connect to a slow host is no part of it.
func (w *admission) atWork() time.Duration {
	if w.at.timed.firstStep == 0 {
		return 0
	}
	return w.at.env.Clock() - w.at.timed.firstStep
}

// admit rules about a job before the attempt connects to its host. If an earlier attempt may have
// begun a step, the attempt asks the host first.
func (w *admission) admit(ctx context.Context) ruling {
	// Freezes do not apply to a job that has begun.
	begun := !w.at.plan.Spec.Window && (w.at.grant.Step > 0 || w.at.memory.Unfinished())
	switch {
	case begun, verdict.MayHaveRun(w.at.grant):
		return ruling{ok: true}
	case w.at.memory.Unfinished():
		return w.continueHalfWay(ctx)
	case w.at.memory.Probe != nil:
		return ruling{ok: true} // it has begun, and its wait for the host continues
	}
	return w.rule(ctx)
}

// continueHalfWay admits a job that has disturbed its host, in any case, and sends an alert if its
// window has ended.
func (w *admission) continueHalfWay(ctx context.Context) ruling {
	r := ruling{ok: true, now: w.at.env.Agreed.Current(ctx, jobs.Place(*w.at.grant.Host)).Now}
	left := w.openFor(ctx)
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
		return ruling{ok: true} // an on_fail runs at any time, and a wait that began continues
	}
	again := verdict.MayHaveRun(w.at.grant) && w.at.step == 0 // admit made no ruling about it
	if w.at.plan.Spec.Window && w.at.plan.disturbs(action) || again {
		return w.rule(ctx)
	}
	return ruling{ok: true}
}

// hindrance returns why a step must not start by a ruling; nil if it may.
func (w *admission) hindrance(action scripts.Action, r ruling) *verdict.Hindrance {
	if r.ok {
		return nil
	}
	return &verdict.Hindrance{Why: r.why, Disturbs: w.at.plan.disturbs(action),
		Ruled: &verdict.Ruled{Until: r.until, Soon: r.soon, Group: r.group}}
}

// defers returns a job that waits until a ruling lets its step start.
func (w *admission) defers(action scripts.Action, r ruling) jobs.Result {
	return w.Defer(w.at.evidenceFor(action), *w.hindrance(action, r))
}

// Defer returns the result of a job that waits until its step may begin.
func (w *admission) Defer(f verdict.Evidence, h verdict.Hindrance) jobs.Result {
	w.at.group.held = w.at.group.held || h.Ruled.Group
	return w.at.withMemory(f).NotStarted(h)
}

// ntp returns why NTP may not keep the clock of this machine right; nil: NTP does.
func (w *admission) ntp() error {
	if w.at.env.Synchronised == nil {
		return nil
	}
	return w.at.env.Synchronised()
}

// mayStartNow rules about the time, marks the group, and then asks mayStart. If the time is wrong,
// the attempt may still ask the host how the step ended.
//
// The window may end while the attempt marks the members of a group, or waits for the go of a queue
// that is away. So mayStartNow rules once more if the ruling has become old.
func (w *admission) mayStartNow(ctx context.Context, action scripts.Action) (look bool,
	end *Ending) {
	w.outside = nil
	w.ruled = w.at.env.Clock()
	r := w.admitStep(ctx, action)
	if r.ok {
		r = w.at.group.claim(w.at.stop.ctx, action)
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
	first := w.at.step == 0 && !w.at.memory.Unfinished() // freezes apply, too: the job has not begun
	if w.at.memory.Failed == nil && (w.at.plan.Spec.Window && w.at.plan.disturbs(action) || first) {
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
