package windows

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// Horizon is how far ahead openings are looked for. A window that is not open for
// longer than that is found closed.
const Horizon = 400 * 24 * time.Hour

// Opening is a time in which work may be done: occurrences that touch or overlap
// are one, and what is frozen is cut out.
type Opening struct {
	Start, End time.Time
	Cutoff     time.Time // from here on nothing is begun
	Windows    []string  // whose occurrences make it up
}

// Work is what is to be done.
type Work struct {
	Runbook  string
	Window   bool          // it must be done in a window
	Estimate time.Duration // how long it takes
	Reserve  time.Duration // time that is kept for going back, within the window

	// Override is why a freeze does not hold for it; empty: it does.
	Override string
}

// Verdict is whether work may start.
type Verdict struct {
	OK      bool
	Opening Opening   // if OK and the work needs a window
	Next    time.Time // if not OK: when it may; zero: no such time is known
	Why     string    // if not OK
}

// Admit decides whether work may start at a place at now: now < end − cutoff, and
// now + estimate + reserve ≤ end (design §8). If not, it says when it may.
func (b *Book) Admit(p Place, now time.Time, w Work) Verdict {
	freeze, until, frozen := b.Frozen(p, now)
	if frozen && w.Override != "" {
		frozen = false
	}
	if !w.Window {
		if frozen {
			return Verdict{Next: until, Why: freeze.says(until)}
		}
		return Verdict{OK: true}
	}
	var v Verdict
	for o := range b.openings(p, now, w) {
		if o.Start.After(now) {
			if !o.fits(o.Start, w) {
				continue
			}
			v.Next = o.Start
			break
		}
		if o.fits(now, w) {
			return Verdict{OK: true, Opening: o}
		}
		v.Why = o.tooLate(now, w)
	}
	switch {
	case frozen:
		v.Why = freeze.says(until)
	case v.Why == "":
		v.Why = "outside of its window"
	}
	if v.Next.IsZero() {
		v.Why += ": " + b.nothingAhead(p, now, w)
	}
	return v
}

// fits tells whether work that starts at t gets done in time.
func (o Opening) fits(t time.Time, w Work) bool {
	return t.Before(o.Cutoff) && !t.Add(w.Estimate+w.Reserve).After(o.End)
}

func (o Opening) tooLate(now time.Time, w Work) string {
	left := o.End.Sub(now).Round(time.Second)
	if !now.Before(o.Cutoff) {
		return fmt.Sprintf("the window ends in %s: nothing is begun any more", left)
	}
	text := fmt.Sprintf("the window ends in %s, and the work takes %s", left, w.Estimate)
	if w.Reserve > 0 {
		text += fmt.Sprintf(" and %s to go back", w.Reserve)
	}
	return text
}

func (f Freeze) says(until time.Time) string {
	text := "frozen by " + f.Name
	if f.Reason != "" {
		text += " (" + f.Reason + ")"
	}
	if until.IsZero() {
		return text + ", until that is lifted"
	}
	return text + " until " + until.Format(time.RFC3339)
}

// nothingAhead says why there is no opening for work at a place.
func (b *Book) nothingAhead(p Place, now time.Time, w Work) string {
	holding := b.holding(p)
	if len(holding) == 0 && p.Host == "" {
		return "there is no window: ask the customer for one"
	}
	if len(holding) == 0 {
		return fmt.Sprintf("there is no window for host %s: ask its customer for one", p.Host)
	}
	var closed string
	for _, e := range holding {
		if !e.Allows(w.Runbook) {
			closed = fmt.Sprintf("window %s is not for runbook %s", e.Name, w.Runbook)
			continue
		}
		if o, ok := first(e.occurrences(now)); ok && !o.OK {
			return fmt.Sprintf("no approved window: its customer has to approve %s", e.Name)
		}
		closed = fmt.Sprintf("window %s has no opening of %s in the next %d days", e.Name,
			w.Estimate+w.Reserve, int(Horizon.Hours()/24))
	}
	return closed
}

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

// openings unites what touches or overlaps, and cuts out what is frozen.
func (b *Book) openings(p Place, from time.Time, w Work) iter.Seq[Opening] {
	var sources []iter.Seq[Approved]
	for _, e := range b.holding(p) {
		if e.Allows(w.Runbook) {
			sources = append(sources, e.usable(from))
		}
	}
	horizon := from.Add(Horizon)
	var frozen []period
	if w.Override == "" {
		frozen = b.frozen(p, from, horizon)
	}
	occurrences := merge(sources, func(a, b Approved) int { return a.Start.Compare(b.Start) })
	return func(yield func(Opening) bool) {
		for o := range unite(occurrences, horizon) {
			for _, part := range o.cut(frozen) {
				if part.End.After(from) && !yield(part) {
					return
				}
			}
		}
	}
}

// unite makes openings of what may be used, up to the horizon.
func unite(occurrences iter.Seq[Approved], horizon time.Time) iter.Seq[Opening] {
	return func(yield func(Opening) bool) {
		var o Opening
		for a := range occurrences {
			if a.Start.After(horizon) {
				break
			}
			switch {
			case len(o.Windows) > 0 && !a.Start.After(o.End):
				o.join(a.Occurrence)
				continue
			case len(o.Windows) > 0 && !yield(o):
				return
			}
			o = Opening{Start: a.Start, End: a.End, Cutoff: a.Cutoff, Windows: []string{a.Window}}
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

// AtEnd is what becomes of work that runs at a place when its window ends: where
// several windows hold, the stricter way.
func (b *Book) AtEnd(p Place, runbook string) AtEnd {
	for _, e := range b.holding(p) {
		if e.Allows(runbook) && e.AtEnd == StopAtSafePoint {
			return StopAtSafePoint
		}
	}
	return Finish
}
