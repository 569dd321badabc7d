package windows

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"muster/internal/ordered"
)

// Freeze is a time in which no work begins, whatever its source.
type Freeze struct {
	Name string
	For  Scope
	// Customer limits the freeze to hosts of this customer; empty: For decides.
	Customer string

	Zone   Zone
	Reason string

	// A freeze lasts from one reading to the other (a reading in a gap or a fold means the wider of
	// its two instants), or as long as the events of an iCalendar file, or both.
	From, Until Wall // Until 0: until somebody lifts it
	Events      []Event
}

// A period is a stretch of time. A zero end means that it has none.
type period struct {
	start, end time.Time
	name       string
}

func (p period) has(t time.Time) bool {
	return !t.Before(p.start) && (p.end.IsZero() || t.Before(p.end))
}

// periods yields the stretches of the freeze that end after from, ordered by beginning.
func (f Freeze) periods(from time.Time) iter.Seq[period] {
	var sources []iter.Seq[period]
	if f.From != 0 || f.Until != 0 {
		start, end := f.Span()
		p := period{start: start, end: end, name: f.Name}
		sources = append(sources, func(yield func(period) bool) {
			if p.end.IsZero() || p.end.After(from) {
				yield(p)
			}
		})
	}
	if len(f.Events) > 0 {
		begins := eventBegins(f.Events, from.Add(-lengthOfEvents(f.Events)), placing{freeze: true})
		sources = append(sources, func(yield func(period) bool) {
			for b := range begins {
				if b.latest.After(from) && !yield(period{start: b.at, end: b.latest, name: f.Name}) {
					return
				}
			}
		})
	}
	return ordered.Merge(sources, func(a, b period) int { return a.start.Compare(b.start) })
}

// Span returns the beginning and the end of a freeze without events. A zero end means until
// somebody lifts it.
func (f Freeze) Span() (from, until time.Time) {
	if f.From == 0 && f.Until == 0 {
		return time.Time{}, time.Time{}
	}
	from = unix(f.Zone.resolve(f.From).first)
	if f.Until != 0 {
		until = unix(f.Zone.resolve(f.Until).last)
	}
	return from, until
}

// Next returns the stretch of the freeze that contains t, or else the next one. Both times are
// zero if there is none; a zero end means until somebody lifts it.
func (f Freeze) Next(t time.Time) (from, until time.Time) {
	p, _ := first(f.periods(t))
	return p.start, p.end
}

// Holds reports whether the freeze is on at t.
func (f Freeze) Holds(t time.Time) bool {
	p, ok := first(f.periods(t))
	return ok && p.has(t)
}

// frozen returns the stretches in which a place is frozen, from from on, up to a horizon. The list
// is short, so that callers may search it item by item.
func (b *Book) frozen(p Place, from, horizon time.Time) []period {
	var all []period
	for f := range b.freezesOf(p) {
		for s := range f.periods(from) {
			if s.start.After(horizon) {
				break
			}
			all = append(all, s)
		}
	}
	return all
}

// A clearing is the first stretch from some instant on that is free of freezes for long enough.
type clearing struct {
	start time.Time
	edge  time.Time // beginning of the first freeze after the instant; zero: there is none
	ok    bool      // false: there is no clearing
}

// A clearer returns the clearing from an instant on.
type clearer func(from time.Time) clearing

// clearings returns the clearer for work at a place.
func (b *Book) clearings(p Place, w Work) clearer {
	var freezes []*Freeze
	if w.Override == "" {
		freezes = slices.Collect(b.freezesOf(p))
	}
	return func(from time.Time) clearing {
		c := clearing{start: from, ok: true}
		if len(freezes) == 0 {
			return c
		}
		sources := make([]iter.Seq[period], len(freezes))
		for i, f := range freezes {
			sources[i] = f.periods(from)
		}
		looks := 0
		for s := range ordered.Merge(sources, func(a, b period) int { return a.start.Compare(b.start) }) {
			if looks++; looks > occurrencesMax { // the search ends here: the place may be frozen behind it
				c.ok = false
				return c
			}
			if c.edge.IsZero() {
				c.edge = later(s.start, from)
			}
			switch end := c.start.Add(w.Estimate + w.Reserve); {
			case s.start.After(c.start) && !s.start.Before(end), s.start.After(from.Add(Horizon)):
				return c
			case s.end.IsZero():
				c.ok = false
				return c
			}
			c.start = later(c.start, s.end)
		}
		return c
	}
}

// Frozen reports whether a place is frozen at t, by which freeze, and until when. A zero time
// means that nobody knows the end.
func (b *Book) Frozen(p Place, t time.Time) (f Freeze, until time.Time, frozen bool) {
	for candidate := range b.freezesOf(p) {
		for s := range candidate.periods(t) {
			if s.start.After(t) {
				break
			}
			switch {
			case !frozen, s.end.IsZero(), !until.IsZero() && s.end.After(until):
				f, until, frozen = *candidate, s.end, true
			}
		}
	}
	return f, until, frozen
}

// hash returns a hash of all that decides when the freeze is on, and of its reason.
func (f Freeze) hash() string {
	text := fmt.Sprint(f.For, f.Customer, f.Zone, f.From, f.Until, f.Reason)
	for _, e := range f.Events {
		text += e.hash()
	}
	return text
}
