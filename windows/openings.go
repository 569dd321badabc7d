package windows

import (
	"iter"
	"slices"
	"time"

	"muster/internal/ordered"
)

// Openings returns the first openings for work at a place that end after from, within the horizon.
func (b *Book) Openings(p Place, from time.Time, w Work, most int) []Opening {
	var all []Opening
	for o := range b.openings(p, from, w) {
		if len(all) == most {
			break
		}
		all = append(all, o)
	}
	return all
}

// OpeningAt returns the opening for work at a place that is open at t, with its true end. To
// decide whether work may start, use [Book.Admit], which need not find that end.
func (b *Book) OpeningAt(p Place, t time.Time, w Work) (Opening, bool) {
	o, ok := first(b.openings(p, t, w))
	return o, ok && !o.Start.After(t)
}

// openForLeast bounds the search for the end of an opening in OpenFor.
const openForLeast = time.Hour

// OpenFor returns how long a place stays open from now on for a runbook, whether it is frozen or
// not; 0 if it is not open. The search ends after an hour, so a longer result may be too short.
func (b *Book) OpenFor(p Place, now time.Time, runbook string) time.Duration {
	for o := range b.growing(p, now, runbook) {
		switch {
		case o.Start.After(now):
			return 0
		case o.whole() || o.End.Sub(now) >= openForLeast:
			return o.End.Sub(now)
		}
	}
	return 0
}

// openings yields the openings for work at a place: occurrences that touch or overlap are united,
// and freezes are cut out.
func (b *Book) openings(p Place, from time.Time, w Work) iter.Seq[Opening] {
	var frozen []period
	if w.Override == "" {
		frozen = b.frozen(p, from, from.Add(Horizon))
	}
	growing := b.growing(p, from, w.Runbook)
	return func(yield func(Opening) bool) {
		for o := range growing {
			if !o.whole() {
				continue
			}
			for _, part := range o.cut(frozen) {
				if part.End.After(from) && !yield(part) {
					return
				}
			}
		}
	}
}

// A growth is an opening as far as it has been computed: later occurrences may make it longer.
type growth struct {
	Opening
	next time.Time // beginning of the next occurrence that joins it; zero: none does
}

// whole reports whether the end is the true one.
func (g growth) whole() bool { return g.next.IsZero() }

// sure reports whether the state of the opening at t is final, however far it grows: each
// occurrence that joins it begins at t or later, and before its own cutoff, so none of them can
// put t behind a cutoff.
func (g growth) sure(t time.Time) bool { return g.whole() || !t.After(g.next) }

// upTo returns the opening up to the beginning of a freeze; zero: there is no freeze.
func (o Opening) upTo(edge time.Time) Opening {
	if !edge.IsZero() {
		o.End, o.Cutoff = earlier(o.End, edge), earlier(o.Cutoff, edge)
	}
	return o
}

// growing yields the openings for a runbook at a place that end after from, within the horizon,
// whether they are frozen or not.
func (b *Book) growing(p Place, from time.Time, runbook string) iter.Seq[growth] {
	var sources []iter.Seq[Approved]
	for _, e := range b.holding(p) {
		if e.Allows(runbook) {
			sources = append(sources, e.usable(from))
		}
	}
	occurrences := ordered.Merge(sources, func(a, b Approved) int { return a.Start.Compare(b.Start) })
	return grow(occurrences, from.Add(Horizon))
}

// occurrencesMax bounds the occurrences that one answer looks at. A place with a thousand
// occurrences a day has an opening soon, so the bound rarely matters.
const occurrencesMax = 20_000

// grow turns usable occurrences into openings, up to the horizon. It yields each opening before it
// becomes longer, and again when it is whole.
func grow(occurrences iter.Seq[Approved], horizon time.Time) iter.Seq[growth] {
	return func(yield func(growth) bool) {
		var o growth
		looks := 0
		for a := range occurrences {
			if looks++; a.Start.After(horizon) || looks > occurrencesMax {
				break
			}
			switch {
			case len(o.Windows) > 0 && !a.Start.After(o.End):
				if o.next = a.Start; !yield(o) {
					return
				}
				o.next = time.Time{}
				o.join(a.Occurrence)
				continue
			case len(o.Windows) > 0 && !yield(o):
				return
			}
			o.Opening = Opening{Start: a.Start, End: a.End, Cutoff: a.Cutoff, Windows: []string{a.Window}}
		}
		if len(o.Windows) > 0 {
			yield(o)
		}
	}
}

// join makes the opening longer. It takes the cutoff of the later end.
func (o *Opening) join(next Occurrence) {
	if next.End.After(o.End) || next.End.Equal(o.End) && next.Cutoff.After(o.Cutoff) {
		o.End, o.Cutoff = next.End, next.Cutoff
	}
	if !slices.Contains(o.Windows, next.Window) {
		o.Windows = append(o.Windows, next.Window)
	}
}

// cut removes the frozen stretches from an opening.
func (o Opening) cut(frozen []period) []Opening {
	parts := []Opening{o}
	for _, f := range frozen {
		var left []Opening
		for _, p := range parts {
			left = append(left, p.without(f)...)
		}
		parts = left
	}
	return slices.DeleteFunc(parts, func(p Opening) bool { return !p.Cutoff.After(p.Start) })
}

// without returns the parts of an opening before and after a stretch.
func (o Opening) without(f period) []Opening {
	if !f.start.Before(o.End) || !f.end.IsZero() && !f.end.After(o.Start) {
		return []Opening{o}
	}
	var parts []Opening
	if f.start.After(o.Start) {
		before := o
		before.End = f.start
		before.Cutoff = earlier(o.Cutoff, f.start)
		parts = append(parts, before)
	}
	if !f.end.IsZero() && f.end.Before(o.End) {
		after := o
		after.Start = f.end
		parts = append(parts, after)
	}
	return parts
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
