package windows

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Event is one of an iCalendar file, with all its repetitions. They are kept as
// readings, worked out when the file is read: a rule is not asked again and again.
type Event struct {
	UID     string
	Summary string
	Zone    Zone
	Starts  []Wall // in order, each once

	// Length is elapsed time; of an event of whole days it is by the clock.
	Length time.Duration
	Days   bool

	// Clock is from the reading of its beginning to that of its end, if DTEND gave one, or a
	// DURATION of days: on a night on which the clocks are set that is not Length.
	Clock Wall
}

// hash is of all that makes up when the event is. Of a clock that says what the length says
// it is what it was before there was one: approvals that were given then hold.
func (e Event) hash() string {
	h := sha256.New()
	parts := []any{e.Zone, e.Starts, e.Length, e.Days}
	if e.Clock != 0 && e.Clock != Wall(e.Length/time.Second) {
		parts = append(parts, e.Clock)
	}
	fmt.Fprintln(h, parts...)
	return hex.EncodeToString(h.Sum(nil))
}

// begins are the event's beginnings from from on, with their ends.
func (e Event) begins(from time.Time, p Policy) iter.Seq[begin] {
	i, _ := slices.BinarySearch(e.Starts, e.Zone.readingsFrom(from))
	starts := fromWalls(slices.Values(e.Starts[i:]), e.Zone, from, p)
	return func(yield func(begin) bool) {
		for b := range starts {
			b.end, b.latest = e.ends(b)
			if !yield(b) {
				return
			}
		}
	}
}

// ends are the first and the last of what the end may mean: a time that passes, or a
// reading. They differ where the clocks are set. Work stops at the first, so that it is
// never done later than was agreed; a freeze goes on to the last.
func (e Event) ends(b begin) (first, last time.Time) {
	first = b.at.Add(e.Length)
	last = first
	span := e.Clock
	switch {
	case e.Days:
		r := e.Zone.resolve(b.wall + Wall(e.Length/time.Second))
		return unix(r.first), unix(r.last)
	case span == 0 && e.Zone.Wall(b.at) == b.wall:
		return first, last
	case span == 0: // the beginning was in a gap, and came late
		span = Wall(e.Length / time.Second)
	}
	r := e.Zone.resolve(b.wall + span)
	read := unix(r.first)
	if !read.After(b.at) {
		read = unix(r.last) // it begins in the second of two equal hours
	}
	return earlier(first, read), later(last, unix(r.last))
}

func lengthOfEvents(events []Event) time.Duration {
	var most time.Duration
	for _, e := range events {
		most = max(most, e.Length+reach*time.Second)
	}
	return most
}
