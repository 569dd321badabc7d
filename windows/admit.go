package windows

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// Horizon bounds the search for openings. A window without an opening within it counts as closed.
const Horizon = 400 * 24 * time.Hour

// Opening is a time in which work may be done: occurrences that touch or overlap form one opening,
// and freezes are cut out of it.
type Opening struct {
	Start, End time.Time
	Cutoff     time.Time // from here on no work begins
	Windows    []string  // the windows whose occurrences form it
}

// Work describes the work that waits for an opening.
type Work struct {
	Runbook  string
	Window   bool          // the work needs a window
	Estimate time.Duration // the time that the work takes
	Reserve  time.Duration // time that is kept for a rollback, within the window

	// Override is the reason why freezes do not apply to the work; empty: they apply.
	Override string
}

// Verdict says whether work may start.
type Verdict struct {
	OK    bool
	Until time.Time // if OK and the work needs a window: the window is open at least until then
	Next  time.Time // if not OK: the next time at which it may start; zero: no such time is known
	Why   string    // the reason, if not OK
}

// Admit decides whether work may start at a place at now: now < end − cutoff, and now + estimate +
// reserve ≤ end (design §8). If not, the verdict holds the next such time.
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

// earliest returns the first time from now on at which work may start. The sequence yields an
// opening again each time it has grown: so earliest follows an opening that never ends only until
// the work fits into it.
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

// fits reports whether work that starts at t ends in time.
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

// nothingAhead explains why there is no opening for work at a place.
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

// AtEnd returns how to treat work that still runs at a place when its window ends. Where several
// windows apply, the strictest one decides. A window without approval counts too, because the work
// may have started before the window needed an approval.
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
