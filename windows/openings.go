package windows

import (
	"iter"
	"slices"
	"time"
)

// Openings are the first openings for work at a place that end after from, within
// the horizon.
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

// OpeningAt is the opening for work at a place that is open at t, with its true end. Who
// asks whether work may start asks [Book.Admit], which need not know that.
func (b *Book) OpeningAt(p Place, t time.Time, w Work) (Opening, bool) {
	o, ok := first(b.openings(p, t, w))
	return o, ok && !o.Start.After(t)
}

// openForLeast is how far ahead the end of what is open is looked for.
const openForLeast = time.Hour

// OpenFor is for how long a place is open from now on for a runbook, whether it is frozen or
// not; 0: it is not open. What is open for longer than an hour may be open longer than it says.
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

// openings unites what touches or overlaps, and cuts out what is frozen.
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

// A growth is an opening as far as it is known: more of what is agreed may be looked at, and
// make it longer.
type growth struct {
	Opening
	next time.Time // where the occurrence begins that comes to it next; zero: none does
}

// whole tells that the end is the true one.
func (g growth) whole() bool { return g.next.IsZero() }

// sure tells that what is known of t now is true of all that it may grow to: what comes to it
// begins at t or later, and each occurrence begins before its cutoff. So none makes it cut
// off at t.
func (g growth) sure(t time.Time) bool { return g.whole() || !t.After(g.next) }

// upTo is an opening up to where something is frozen; zero: nothing is.
func (o Opening) upTo(edge time.Time) Opening {
	if !edge.IsZero() {
		o.End, o.Cutoff = earlier(o.End, edge), earlier(o.Cutoff, edge)
	}
	return o
}

// growing are the openings for a runbook at a place that end after from, within the horizon,
// whether they are frozen or not.
func (b *Book) growing(p Place, from time.Time, runbook string) iter.Seq[growth] {
	var sources []iter.Seq[Approved]
	for _, e := range b.holding(p) {
		if e.Allows(runbook) {
			sources = append(sources, e.usable(from))
		}
	}
	occurrences := merge(sources, func(a, b Approved) int { return a.Start.Compare(b.Start) })
	return grow(occurrences, from.Add(Horizon))
}

// occurrencesMax bounds how many occurrences are looked at for one answer: a place for which
// there are a thousand a day has an opening soon, or is not asked to find one next year.
const occurrencesMax = 20_000

// grow makes openings of what may be used, up to the horizon: it tells of each before it
// becomes longer, and when it is whole.
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

// join makes the opening longer. The cutoff is that of the end.
func (o *Opening) join(next Occurrence) {
	if next.End.After(o.End) || next.End.Equal(o.End) && next.Cutoff.After(o.Cutoff) {
		o.End, o.Cutoff = next.End, next.Cutoff
	}
	if !slices.Contains(o.Windows, next.Window) {
		o.Windows = append(o.Windows, next.Window)
	}
}

// cut takes what is frozen out of an opening.
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

// without is what is left of an opening, before and after a stretch.
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
