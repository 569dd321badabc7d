package worker

import (
	"time"

	"muster/jobs"
	"muster/scripts"
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
func (a *attempt) on(u jobs.Use) (done func()) {
	before := a.clocks.turn(u, a.Clock())
	return func() { a.clocks.turn(before, a.Clock()) }
}

// spentBefore is the ledger of a job up to when it was handed out. What a lost attempt did
// is not known, and counts nowhere.
func spentBefore(g jobs.Grant) jobs.Ledger {
	l, err := jobs.ParseLedger(g.Spent)
	if err != nil {
		l = jobs.Ledger{} // written by another version: it begins anew
	}
	if g.Mode == jobs.ModeLost {
		l.Until, l.For = jobs.Micros(g.Token), ""
		return l
	}
	l.Waited(g.Due, jobs.Micros(g.Token))
	return l
}

// reckoned is the ledger with which a job ends, or waits for use from an instant on.
func reckoned(l jobs.Ledger, k jobs.Kind, use jobs.Use, now jobs.Micros) string {
	l.Until, l.For = now, use
	if k == jobs.KindEnd {
		l.Until = 0
	}
	return l.String()
}

// spent is the ledger of the job behind this attempt.
func (a *attempt) spent(k jobs.Kind) string {
	a.clocks.turn("", a.Clock())
	use := waitsFor(k, a.kind)
	if k == jobs.KindDefer && a.held {
		use = jobs.Queueing // no window has to do with it
	}
	return reckoned(a.clocks.ledger, k, use, a.now())
}

// spent is the ledger of a job with which nothing was done.
func (f facts) spent(k jobs.Kind) string {
	return reckoned(spentBefore(f.grant), k, waitsFor(k, f.action.Kind), jobs.Micros(f.grant.Token))
}

// waitsFor is what the time goes to between a result and the next attempt.
func waitsFor(k jobs.Kind, step scripts.Kind) jobs.Use {
	switch {
	case k == jobs.KindDefer:
		return jobs.InWindow
	case k == jobs.KindVerify:
		return jobs.Verifying
	case k == jobs.KindBack:
		return jobs.Queueing
	case k == jobs.KindWait && looking(step) != "":
		return looking(step)
	}
	return jobs.Pausing
}

// looking is what the time of a step goes to that gives the worker back; empty: of another.
func looking(k scripts.Kind) jobs.Use {
	switch k {
	case scripts.KindVerify, scripts.KindReboot, scripts.KindConfirm:
		return jobs.Verifying
	case scripts.KindWait:
		return jobs.Pausing
	case scripts.KindGate:
		return jobs.AtGate
	}
	return ""
}
