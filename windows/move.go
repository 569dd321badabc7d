package windows

import (
	"slices"
	"time"
)

// Waiting is work with an appointment at a place.
type Waiting struct {
	Place
	Work
	At   time.Time // the appointment
	From time.Time // the work does not begin before
}

// Moved is the decision about an appointment.
type Moved struct {
	To     time.Time // the new appointment; zero: it stays
	Cancel string    // why the work is given up; empty: it is kept
}

// Move decides about an appointment after the windows have changed. A valid appointment stays;
// only if its window says `next` an earlier opening replaces it. The window's on_change applies
// only to changes of its times: a freeze, or an approval that became void, cancels nothing. If
// there is no opening at all the appointment stays, and the worker that takes the job when it is
// due reports why it may not begin.
func (b *Book) Move(w Waiting, now time.Time) Moved {
	from := later(now, w.From)
	next := b.Admit(w.Place, from, w.Work)
	to := next.Next
	if next.OK {
		to = from
	}
	way := b.OnChange(w.Place, w.Runbook)
	good := b.Admit(w.Place, w.At, w.Work).OK
	switch {
	case good && (w.Window && way != MoveToNext || !to.Before(w.At)):
		return Moved{}
	case !good && way == CancelJobs && w.Window && !b.unagreed().Admit(w.Place, w.At, w.free()).OK:
		return Moved{Cancel: "its window is not open any more at " + w.At.UTC().Format(time.RFC3339)}
	case !good && way == MoveToNearest && w.Window:
		to = b.nearest(w, from, to)
	}
	if to.Equal(w.At) {
		return Moved{}
	}
	return Moved{To: to}
}

// OnChange returns how to treat jobs that wait for a window of a place when that window changes.
// Where several windows apply, the strictest way decides.
func (b *Book) OnChange(p Place, runbook string) OnChange {
	order := []OnChange{MoveToNext, MoveToNearest, CancelJobs}
	way := 0
	for _, e := range b.holding(p) {
		if e.Allows(runbook) {
			way = max(way, slices.Index(order, e.OnChange))
		}
	}
	return order[way]
}

// nearest returns the beginning of the opening that is nearest to an appointment; first is the
// beginning of the first opening.
func (b *Book) nearest(w Waiting, from, first time.Time) time.Time {
	best := first
	for o := range b.openings(w.Place, from, w.Work) {
		start := later(o.Start, from)
		if !o.fits(start, w.Work) {
			continue
		}
		if start.Sub(w.At).Abs() < best.Sub(w.At).Abs() {
			best = start
		}
		if start.After(w.At) {
			break
		}
	}
	return best
}

// free returns the work as if there were no freeze.
func (w Work) free() Work {
	w.Override = "the question is about the window"
	return w
}

// unagreed returns the book as if no window needed an approval.
func (b *Book) unagreed() *Book {
	a := b.agreed
	a.Windows = slices.Clone(a.Windows)
	for i := range a.Windows {
		a.Windows[i].Approval = false
	}
	free := NewBook(a)
	for s, entries := range free.windows { // in the order of the agreed windows, as in b
		for i, e := range entries {
			e.asks = b.windows[s][i].asks
		}
	}
	return free
}
