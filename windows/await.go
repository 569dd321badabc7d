package windows

import "time"

// Awaited explains why work that is due at a later time does not begin before.
type Awaited struct {
	Opening        // the opening in which it may begin; zero: it waits for none, or none is known
	Why     string // the obstacle: a freeze, or that no opening is known
	Until   time.Time
}

// A Waiter finds out what work waits for. It remembers its answers, so it is for one look.
type Waiter struct {
	book  *Book
	now   time.Time
	known map[waiterKey]Awaited
}

// waiterKey identifies work that gets the same answer.
type waiterKey struct {
	place Place
	at    time.Time
	work  Work
}

// Waiter returns a Waiter for a look at time now.
func (b *Book) Waiter(now time.Time) *Waiter {
	return &Waiter{book: b, now: now, known: map[waiterKey]Awaited{}}
}

// Of explains why work at a place waits until a time. Work that waits only for its own due time,
// such as a job of a schedule with jitter, waits for nothing else.
func (w *Waiter) Of(p Place, at time.Time, work Work) Awaited {
	// Openings begin at whole seconds; the fraction of a due time only orders the jobs of a task.
	at = later(at, w.now).Truncate(time.Second)
	key := waiterKey{w.book.alike(p), at, work}
	a, ok := w.known[key]
	if !ok {
		a = w.find(p, at, work)
		w.known[key] = a
	}
	return a
}

func (w *Waiter) find(p Place, at time.Time, work Work) Awaited {
	if !work.Window {
		v := w.book.Admit(p, later(w.now, at.Add(-time.Second)), work) // it may be frozen only then
		if v.OK || !v.Next.IsZero() && v.Next.Before(at) {
			return Awaited{} // a freeze, if there is one, ends before
		}
		return Awaited{Why: v.Why, Until: v.Next}
	}
	v := w.book.Admit(p, at, work)
	switch {
	case v.OK:
	case v.Next.IsZero():
		return Awaited{Why: v.Why}
	default:
		at = v.Next
	}
	o, _ := w.book.OpeningAt(p, at, work)
	return Awaited{Opening: o}
}
