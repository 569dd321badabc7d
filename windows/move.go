package windows

import (
	"slices"
	"time"
)

// Waiting is work that has an appointment at a place.
type Waiting struct {
	Place
	Work
	At   time.Time // the appointment
	From time.Time // not before
}

// Moved is what becomes of an appointment.
type Moved struct {
	To     time.Time // the new one; zero: it stays
	Cancel string    // why the work is given up; empty: it is not
}

// Move says what becomes of an appointment by what is agreed now. One that is good stays,
// but for a window that says `next`: then an opening before it is taken. The window's way
// with changes holds for what changed of its times; a freeze, or an approval that is gone,
// cancels nothing. Where there is no opening at all the appointment stays: when it is due,
// whoever takes the work says why it does not begin.
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
	case good && (way != MoveToNext || !to.Before(w.At)):
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

// OnChange is what becomes of jobs that wait for a window of a place, when it is changed:
// where several windows hold, the way that gives up most.
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

// nearest is the beginning of the opening that is nearest to an appointment; first is the
// first that there is.
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

// free is the work as if nothing were frozen.
func (w Work) free() Work {
	w.Override = "it is asked about the window"
	return w
}

// unagreed is the book as if nothing had to be approved.
func (b *Book) unagreed() *Book {
	a := b.agreed
	a.Windows = slices.Clone(a.Windows)
	for i := range a.Windows {
		a.Windows[i].Approval = false
	}
	free := NewBook(a)
	for s, entries := range free.windows { // in the order of the agreed windows, as ours
		for i, e := range entries {
			e.asks = b.windows[s][i].asks
		}
	}
	return free
}
