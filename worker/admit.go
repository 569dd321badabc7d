package worker

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"muster/jobs"
	"muster/scripts"
	"muster/windows"
	"muster/worker/verdict"
)

// This file decides whether a job may begin, and go on, at this time (design §8). It is
// asked right after the take, before anybody connects to the host, and again before each
// step that disturbs it: a window may have been changed or frozen, and time passes.

// A question is all that a decision about a start is made of.
type question struct {
	reading
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
	case q.err != nil && (!q.running || q.book == nil):
		return ruling{soon: true, why: "what is agreed about times is not known: " + q.err.Error()}
	case q.running:
		return ruleRunning(q)
	case q.work.Window && q.clock != "":
		return ruling{soon: true, why: q.clock}
	}
	v := q.book.Admit(q.place, q.now, q.work)
	return ruling{ok: v.OK, end: v.Until, until: v.Next, why: v.Why}
}

func ruleRunning(q question) ruling {
	q.work.Override = "it runs"
	v := q.book.Admit(q.place, q.now, q.work)
	switch {
	case v.OK:
		return ruling{ok: true, end: v.Until}
	case !q.undoing && q.book.AtEnd(q.place, q.work.Runbook) == windows.StopAtSafePoint:
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

// rule asks whether the step in hand may start now. It asks nothing of tasks in whose
// way no time can be: what runs, and needs no window.
func (a *attempt) rule(ctx context.Context) ruling {
	spec := a.plan.spec
	q := question{running: a.disturbed(), undoing: a.memory.Failed != nil,
		work: windows.Work{Runbook: spec.Runbook, Window: spec.Window, Reserve: spec.Reserve,
			Override: spec.Override}}
	if q.running && !q.work.Window || a.grant.Host == nil {
		return ruling{ok: true}
	}
	q.place = jobs.Place(*a.grant.Host)
	q.reading = a.agreed.current(ctx, q.place)
	if q.work.Window {
		q.clock = clockDoubt(q.skew, a.ntp(), a.cfg.RequireNTP)
		takes, err := a.agreed.estimate(ctx, jobs.EstimateField(spec.Work(), *a.grant.Host))
		if err != nil && q.err == nil {
			q.err = err
		}
		q.work.Estimate = max(cmp.Or(takes, spec.Expect)-a.atWork(), 0)
	}
	r := rule(q)
	if r.over != "" {
		a.alertOver(ctx, r.over)
	}
	r.now = q.now
	return r
}

// begin notes that a step is begun.
func (a *attempt) begin() {
	a.begun, a.unused = true, false
	a.stepped = cmp.Or(a.stepped, a.Clock())
}

// atWork is for how long steps have been running: what is done of the work counts no more.
// To get to a slow host is no part of it.
func (a *attempt) atWork() time.Duration {
	if a.stepped == 0 {
		return 0
	}
	return a.Clock() - a.stepped
}

// admit rules about a job before its host is called. What an earlier attempt may have
// begun is asked of the host first.
func (a *attempt) admit(ctx context.Context) ruling {
	// Freezes do not hold for what has begun.
	begun := !a.plan.spec.Window && (a.grant.Step > 0 || a.disturbed())
	switch {
	case begun, verdict.MayHaveRun(a.grant):
		return ruling{ok: true}
	case a.disturbed():
		return a.lookAfter(ctx)
	case a.memory.Probe != nil:
		return ruling{ok: true} // it has begun, and is looked after
	}
	return a.rule(ctx)
}

// lookAfter is about a job that is half way: it is gone on with in any case.
func (a *attempt) lookAfter(ctx context.Context) ruling {
	r := ruling{ok: true, now: a.agreed.current(ctx, jobs.Place(*a.grant.Host)).now}
	left := a.opensFor(ctx)
	if left <= 0 {
		a.alertOver(ctx, overText)
		return r
	}
	r.end = r.now.Add(left)
	return r
}

// admitStep rules about the step in hand, on a host to which there is a connection.
func (a *attempt) admitStep(ctx context.Context, action scripts.Action) ruling {
	if a.memory.Failed != nil || a.memory.Probe != nil {
		return ruling{ok: true} // what failed is brought back at any time, what began is seen to its end
	}
	again := verdict.MayHaveRun(a.grant) &&
		a.step == 0 // which was not asked before the host was called
	if a.plan.spec.Window && a.disturbs(action) || again {
		return a.rule(ctx)
	}
	return ruling{ok: true}
}

// disturbs tells whether a step must not start outside of the window: it is disruptive,
// or none of its runbook is, which asked for the window all the same.
func (a *attempt) disturbs(action scripts.Action) bool {
	if verdict.Looks(action.Kind) {
		return false
	}
	book := a.plan.book
	said := book.Main == 0 && book.Disruptive ||
		slices.ContainsFunc(book.Steps, func(s scripts.Step) bool { return s.Disruptive })
	return action.Disruptive || !said
}

// disturbed tells whether the job is half way: a step that disturbs was done, or what one
// did is being undone.
func (a *attempt) disturbed() bool { return a.memory.Unfinished() }

// noteDisturbed remembers that a step which disturbs was begun.
func (a *attempt) noteDisturbed(action scripts.Action) {
	spec := a.plan.spec
	a.memory.Disturbed = a.memory.Disturbed || (spec.Window || spec.Disruptive) && a.disturbs(action)
}

// deferred returns a job that waits until the ruling lets its step start. never is the answer of
// a host that was asked whether the step had begun.
func (a *attempt) deferred(f verdict.Evidence, r ruling, never error) jobs.Result {
	a.held = a.held || r.group
	return a.fresh(f).NotStarted(verdict.Hindrance{Why: r.why, Never: never,
		Disturbs: a.disturbs(f.Action),
		Ruled:    &verdict.Ruled{Until: r.until, Soon: r.soon, Group: r.group}})
}

// ntp is why the clock is not known to be kept right; nil: it is.
func (a *attempt) ntp() error {
	if a.Synchronised == nil {
		return nil
	}
	return a.Synchronised()
}

// mayStartNow is mayStart, if the time is right. If it is not the host may still be asked
// what became of the step.
//
// To mark the members of a group, and to get a go from a queue that is away, may take
// longer than the window is open: then the time is looked at once more.
func (a *attempt) mayStartNow(ctx context.Context, action scripts.Action) (look bool,
	end *ending) {
	a.outside = nil
	a.ruled = a.Clock()
	r := a.admitStep(ctx, action)
	if r.ok {
		r = a.claim(a.halting, action)
	}
	if end = a.keepOut(action, r); end != nil {
		return false, end
	}
	look, end = a.mayStart(ctx, action)
	if end == nil && !look && r.ok && a.Clock()-a.ruled > agreedMax {
		a.ruled = a.Clock()
		end = a.keepOut(action, a.admitStep(ctx, action))
	}
	return look || a.outside != nil, end
}

// goCameLate is about a go that a reboot or a change got right before it is begun: if it took
// long the time is looked at once more. With the go the queue was told that it has begun,
// which is taken back if it must not.
func (a *attempt) goCameLate(ctx context.Context, action scripts.Action) (r jobs.Result,
	late bool) {
	if a.Clock()-a.ruled <= agreedMax {
		return jobs.Result{}, false
	}
	begun := a.memory.Probe
	a.memory.Probe = nil
	if now := a.admitStep(ctx, action); !now.ok {
		return a.deferred(a.with(action), now, nil), true
	}
	a.memory.Probe = begun
	return jobs.Result{}, false
}

// admitAgain rules about a step that gives its worker back, and of which it is not known that it
// has begun: an earlier attempt got its go, and may have died before it used it.
func (a *attempt) admitAgain(ctx context.Context, action scripts.Action) ruling {
	first := a.step == 0 && !a.disturbed() // of which not even freezes know that it has begun
	if a.memory.Failed == nil && (a.plan.spec.Window && a.disturbs(action) || first) {
		a.ruled = a.Clock()
		return a.rule(ctx)
	}
	return ruling{ok: true}
}

// keepOut is what becomes of a step that must not start now; nil: it may, or its host is
// only asked about it.
func (a *attempt) keepOut(action scripts.Action, r ruling) *ending {
	switch {
	case r.ok:
		return nil
	case !a.asks(action):
		return &ending{result: a.deferred(a.with(action), r, nil)}
	}
	a.outside = &r
	return nil
}
