package windows

import "time"

// Awaited is what holds work up that is to begin at a later time.
type Awaited struct {
	Opening        // the one in which it may begin; zero: it waits for none, or none is known
	Why     string // what is in its way: a freeze, or that no opening is known
	Until   time.Time
}

// A Waiter says what work waits for. It remembers what it has worked out, so it is for one look
// at one book.
type Waiter struct {
	book  *Book
	now   time.Time
	known map[waiterKey]Awaited
}

// waiterKey names work that waits for the same.
type waiterKey struct {
	place Place
	at    time.Time
	work  Work
}

// Waiter returns one for the time of its look.
func (b *Book) Waiter(now time.Time) *Waiter {
	return &Waiter{book: b, now: now, known: map[waiterKey]Awaited{}}
}

// Of says what work at a place waits for that is looked at again at a time. Work that waits for
// its own time only, as that of a schedule with jitter, waits for nothing.
func (w *Waiter) Of(p Place, at time.Time, work Work) Awaited {
	// Openings begin at whole seconds; what is behind is its place among those of its task.
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
		v := w.book.Admit(p, w.now, work)
		if v.OK || !v.Next.IsZero() && v.Next.Before(at) {
			return Awaited{} // the freeze, if there is one, is over before
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
