package attempt

import (
	"time"

	"muster/jobs"
	"muster/worker/verdict"
)

// This file counts the time of a job, each use separately. The time between two attempts counts by
// the result of the first one and the take of the second one; the time within an attempt counts by
// the boot clock. The time that muster itself takes between two steps belongs to no use.

// A stopwatch counts the time of an attempt by its use.
type stopwatch struct {
	ledger jobs.Ledger
	use    jobs.Use // at this moment; empty: none
	since  time.Duration
}

// turn books the time up to now under the present use, and starts another use. It returns the
// present one.
func (w *stopwatch) turn(u jobs.Use, now time.Duration) (before jobs.Use) {
	if w.use != "" {
		w.ledger.Add(w.use, now-w.since)
	}
	before, w.use, w.since = w.use, u, now
	return before
}

// on counts what follows as u, until the function that it returns is called.
func (a *Attempt) spend(u jobs.Use) (done func()) {
	before := a.timed.clocks.turn(u, a.env.Clock())
	return func() { a.timed.clocks.turn(before, a.env.Clock()) }
}

// spent returns the ledger of the job after this attempt.
func (a *Attempt) spent(k jobs.Kind) string {
	a.timed.clocks.turn("", a.env.Clock())
	use := verdict.WaitsFor(k, a.kind)
	if k == jobs.KindDefer && a.group.held {
		use = jobs.Queueing // the job waits for its group, not for a window
	}
	return verdict.Reckoned(a.timed.clocks.ledger, k, use, a.now())
}
