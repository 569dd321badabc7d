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
	OK    bool
	Until time.Time // if OK and the work needs a window: it is open at least until then
	Next  time.Time // if not OK: when it may; zero: no such time is known
	Why   string    // if not OK
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
	v := earliest(b.growing(p, now, w.Runbook), now, w, b.clearings(p, w))
	switch {
	case v.OK:
		return v
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

// earliest is the first time from now on at which work may start. Openings are told of as they
// grow: one that never ends is followed until the work fits into it, and no further.
func earliest(openings iter.Seq[growth], now time.Time, w Work, clear clearer) Verdict {
	var v Verdict
	ahead := clear(now)
	edge := ahead.edge
	for o := range openings {
		today := !o.Start.After(now)
		if ahead.ok && o.Start.After(ahead.start) {
			ahead = clear(o.Start)
		}
		switch {
		case ahead.ok && o.fits(ahead.start, w) && !o.sure(ahead.start):
			continue
		case ahead.ok && o.fits(ahead.start, w):
			if ahead.start.Equal(now) {
				return Verdict{OK: true, Until: o.upTo(edge).End}
			}
			if v.Next = ahead.start; today {
				v.Why = o.upTo(edge).tooLate(now, w)
			}
			return v
		case today && (o.whole() || !ahead.ok && o.sure(now) && !o.End.Before(edge)):
			v.Why = o.upTo(edge).tooLate(now, w)
		}
		if !ahead.ok && (!today || v.Why != "") {
			return v
		}
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
	if e := b.unapproved(p); e != nil && len(holding) == 0 {
		return fmt.Sprintf("no approved window: its customer has to approve %s", e.Name)
	}
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
		if len(e.Times.Events) > 0 {
			closed += fmt.Sprintf(", or %d occurrences", occurrencesMax)
		}
	}
	return closed
}

// AtEnd is what becomes of work that runs at a place when its window ends: where
// several windows hold, the stricter way. One that is not approved says it too: what ran in it
// may have been let in before it had to be.
func (b *Book) AtEnd(p Place, runbook string) AtEnd {
	entries := b.holding(p)
	if e := b.unapproved(p); e != nil {
		entries = append(slices.Clip(entries), e)
	}
	for _, e := range entries {
		if e.Allows(runbook) && e.AtEnd == StopAtSafePoint {
			return StopAtSafePoint
		}
	}
	return Finish
}
