package attempt

import (
	"time"

	"muster/jobs"
	"muster/worker/verdict"
)

// This file counts what the time of a job goes to, each use for itself: what it waited for
// between two attempts, by what the one before said and when the queue handed it out, and
// what this attempt does, by the boot clock. Only what is done for the host is counted; what
// muster itself takes between two steps belongs to none.

// A stopwatch counts what an attempt does.
type stopwatch struct {
	ledger jobs.Ledger
	use    jobs.Use // at this moment; empty: nothing is counted
	since  time.Duration
}

// turn counts what was done up to now, and goes over to another use. It returns the one
// before.
func (w *stopwatch) turn(u jobs.Use, now time.Duration) (before jobs.Use) {
	if w.use != "" {
		w.ledger.Add(w.use, now-w.since)
	}
	before, w.use, w.since = w.use, u, now
	return before
}

// on counts what follows as u, until the function that it returns is called.
func (a *Attempt) on(u jobs.Use) (done func()) {
	before := a.timed.clocks.turn(u, a.env.Clock())
	return func() { a.timed.clocks.turn(before, a.env.Clock()) }
}

// spent is the ledger of the job behind this attempt.
func (a *Attempt) spent(k jobs.Kind) string {
	a.timed.clocks.turn("", a.env.Clock())
	use := verdict.WaitsFor(k, a.kind)
	if k == jobs.KindDefer && a.group.held {
		use = jobs.Queueing // no window has to do with it
	}
	return verdict.Reckoned(a.timed.clocks.ledger, k, use, a.now())
}
