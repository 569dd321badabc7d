package windows

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"time"

	"muster/internal/ordered"
)

// Window is a recurring time in which a customer allows work.
type Window struct {
	Name string
	For  Scope
	// Customer limits the window to hosts of this customer; empty: For decides.
	Customer string
	Zone     Zone
	Times    Calendar // when it begins
	Policy

	// It ends after Length of elapsed time, or when the clocks next read End after its beginning;
	// exactly one of the two is set. End counts from midnight, up to 24 hours.
	Length time.Duration
	End    time.Duration

	// Cutoff is the time before the end in which no work begins.
	Cutoff time.Duration

	// Occurrences that begin before From, or end after Until, do not count. Zero is no bound.
	From, Until Wall

	Runbooks []string // allowed runbooks; empty: all that need a window
	AtEnd    AtEnd
	OnChange OnChange
	Approval bool // the customer has to approve it
}

// AtEnd says how to treat a job that still runs when its window ends.
type AtEnd string

// The ways to treat a job at the end.
const (
	Finish          AtEnd = "finish"             // let it run, with an alert
	StopAtSafePoint AtEnd = "stop_at_safe_point" // let it end its step, and begin no further one
)

// OnChange says how to treat jobs that wait for an occurrence when their window changes.
type OnChange string

// The ways to treat waiting jobs.
const (
	MoveToNext    OnChange = "next"    // move to the next opening from now
	MoveToNearest OnChange = "nearest" // move to the opening nearest to their appointment
	CancelJobs    OnChange = "cancel"
)

// Calendar holds the times at which something begins: cron text, single readings, and the events
// of an iCalendar file. They add up.
type Calendar struct {
	Recurrences []Recurrence
	Dates       []Wall // in order
	Events      []Event

	// Except are days that are left out entirely: no occurrence begins on one or reaches into one.
	Except []Days `json:"Except,omitempty"`
}

// Occurrence is one occurrence of a window, in instants.
type Occurrence struct {
	Window     string
	Start, End time.Time // End is the first instant after it
	Cutoff     time.Time // from here on no work begins
}

// lengthMax bounds a window. A window of a week is possible; more than that is a mistake.
const lengthMax = 7 * 24 * time.Hour

// Validate reports all mistakes in w, except those in its texts.
func (w Window) Validate() []error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	events := len(w.Times.Events) > 0
	switch {
	case len(w.Times.Recurrences)+len(w.Times.Dates) == 0 && !events:
		add("it never begins: give start, dates or ics")
	case !events && (w.Length > 0) == (w.End > 0):
		add("give one of length and end")
	case w.Length > lengthMax:
		add("length = %s: at most %s", w.Length, lengthMax)
	}
	for _, r := range w.Times.Recurrences {
		if r.every > 0 {
			add("start %q: a window goes by the clock, not by @every", r)
		}
		if n := r.timesADay(); n > 24 {
			add("start %q: %d times a day, at most 24", r, n)
		}
	}
	if w.Cutoff < 0 || w.Length > 0 && w.Cutoff >= w.Length {
		add("cutoff = %s: from 0 to less than the length of %s", w.Cutoff, w.Length)
	}
	if w.Until != 0 && w.From >= w.Until {
		add("from %s is not before until %s", w.From, w.Until)
	}
	if len(errs) == 0 {
		if _, ok := first(w.Occurrences(unix(0))); !ok {
			add("it is never open: nothing of it is before the cutoff, and within from and until")
		}
	}
	return errs
}

// Hash returns a hash of all that decides when the window is open, and for what. An approval is
// for one hash, so that it does not cover later changes.
func (w Window) Hash() string {
	texts := make([]string, len(w.Times.Recurrences))
	for i, r := range w.Times.Recurrences {
		texts[i] = r.text
	}
	events := make([]string, len(w.Times.Events))
	for i, e := range w.Times.Events {
		events[i] = e.hash()
	}
	parts := []any{
		w.For, w.Zone.String(), texts, w.Times.Dates, events, w.Policy, w.Length, w.End, w.Cutoff,
		w.From, w.Until, w.Runbooks, w.AtEnd, w.Customer, w.Times.Except,
	}
	b, err := json.Marshal(parts)
	if err != nil {
		return "" // there is nothing in it that JSON does not know
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// Allows reports whether the window is for a runbook.
func (w Window) Allows(runbook string) bool {
	return len(w.Runbooks) == 0 || slices.Contains(w.Runbooks, runbook)
}

// rareMax bounds the search for the next occurrence. It exceeds any distance of two 29ths of
// February.
const rareMax = 9 * 366 * 24 * time.Hour

// Occurrences yields the occurrences that end after from, ordered by beginning. Occurrences that
// begin at the same instant are one, with the latest end. The sequence may be endless, so the
// caller has to stop.
func (w Window) Occurrences(from time.Time) iter.Seq[Occurrence] {
	// An occurrence that began this long ago may still be on: a window that ends by the clock lasts
	// up to a day, and longer if the clocks change.
	reachBack := max(w.Length, lengthOfEvents(w.Times.Events))
	if w.End > 0 {
		reachBack = max(reachBack, 2*24*time.Hour)
	}
	return func(yield func(Occurrence) bool) {
		// Times in words may begin on a day that is far ahead, and they have an end.
		endless := slices.ContainsFunc(w.Times.Recurrences, func(r Recurrence) bool {
			return r.words == nil
		})
		last, held := w.earliest(from.Add(-reachBack)), Occurrence{}
		for b := range w.Times.begins(w.Zone, last, w.Policy) {
			if w.Until != 0 && w.Zone.Wall(b.at) > w.Until || endless && b.at.Sub(last) > rareMax {
				break
			}
			o, ok := w.occurrence(b)
			if !ok || !o.End.After(from) {
				continue
			}
			last = o.Start
			if held.Start.Equal(o.Start) && !held.End.IsZero() {
				held = held.longer(o)
				continue
			}
			if !held.End.IsZero() && !yield(held) {
				return
			}
			held = o
		}
		if !held.End.IsZero() {
			yield(held)
		}
	}
}

// longer returns the longer of two occurrences that begin at the same instant; it stands for both.
func (o Occurrence) longer(other Occurrence) Occurrence {
	if other.End.After(o.End) {
		return other
	}
	return o
}

// earliest returns where to begin the search for occurrences: not before the window is valid.
func (w Window) earliest(from time.Time) time.Time {
	if w.From == 0 {
		return from
	}
	if valid := unix(int64(w.From) - reach); valid.After(from) {
		return valid
	}
	return from
}

// occurrence returns false if the window is not valid then, or if no time is left.
func (w Window) occurrence(b begin) (Occurrence, bool) {
	o := Occurrence{Window: w.Name, Start: b.at, End: b.end}
	switch {
	case !b.end.IsZero(): // an event has an end of its own
	case w.Length > 0:
		o.End = w.endAfter(b)
	default:
		o.End = w.endByClock(b)
	}
	o.Cutoff = o.End.Add(-w.Cutoff)
	if w.From != 0 && w.Zone.Wall(o.Start) < w.From || w.Until != 0 && w.Zone.Wall(o.End) > w.Until {
		return Occurrence{}, false
	}
	if len(w.Times.Except) > 0 {
		if _, out := touching(w.Times.Except, w.Zone.Wall(o.Start), w.Zone.Wall(o.End)); out {
			return Occurrence{}, false
		}
	}
	return o, o.Cutoff.After(o.Start)
}

// endAfter returns the end of an occurrence with a length. If the beginning was in a gap, it is
// later than its reading, and the window still ends no later than its reading said.
func (w Window) endAfter(b begin) time.Time {
	end := b.at.Add(w.Length)
	if w.Zone.Wall(b.at) == b.wall {
		return end
	}
	agreed := unix(w.Zone.resolve(b.wall + Wall(w.Length/time.Second)).first)
	return earlier(agreed, end)
}

// endByClock returns the first instant after the beginning at which the clocks read the end. In a
// fold that is the first of the two instants, in a gap its end: never later than agreed.
func (w Window) endByClock(b begin) time.Time {
	end := b.wall.midnight() + Wall(w.End/time.Second)
	if end <= b.wall {
		end += day
	}
	r := w.Zone.resolve(end)
	if at := unix(r.first); at.After(b.at) {
		return at
	}
	return unix(r.last)
}

// begin is the beginning of an occurrence.
type begin struct {
	at   time.Time
	wall Wall // the reading that was asked for; the clocks may not show it

	end    time.Time // end of an event; zero: the window decides
	latest time.Time // the last instant that the end of an event may mean
}

// begins merges all beginnings from from on, ordered by instant.
func (c Calendar) begins(z Zone, from time.Time, p Policy) iter.Seq[begin] {
	sources := make([]iter.Seq[begin], 0, len(c.Recurrences)+2)
	for _, r := range c.Recurrences {
		sources = append(sources, fromWalls(r.walls(z.readingsFrom(from)), z, from, p))
	}
	if len(c.Dates) > 0 {
		sources = append(sources, fromWalls(slices.Values(c.Dates), z, from, p))
	}
	if len(c.Events) > 0 {
		sources = append(sources, eventBegins(c.Events, from, placing{Policy: p}))
	}
	return ordered.Merge(sources, func(a, b begin) int { return a.at.Compare(b.at) })
}

func fromWalls(walls iter.Seq[Wall], z Zone, from time.Time, p Policy) iter.Seq[begin] {
	return func(yield func(begin) bool) {
		for w := range walls {
			if at, ok := z.Instant(w, p); ok && !at.Before(from) && !yield(begin{at: at, wall: w}) {
				return
			}
		}
	}
}
