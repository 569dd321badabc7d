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
}

// hash is of all that makes up when the event is.
func (e Event) hash() string {
	h := sha256.New()
	fmt.Fprintln(h, e.Zone, e.Starts, e.Length, e.Days)
	return hex.EncodeToString(h.Sum(nil))
}

// begins are the event's beginnings from from on, with their ends.
func (e Event) begins(from time.Time, p Policy) iter.Seq[begin] {
	i, _ := slices.BinarySearch(e.Starts, e.Zone.Wall(from)-reach)
	starts := fromWalls(slices.Values(e.Starts[i:]), e.Zone, from, p)
	return func(yield func(begin) bool) {
		for b := range starts {
			b.end = b.at.Add(e.Length)
			if e.Days {
				b.end = unix(e.Zone.resolve(b.wall + Wall(e.Length/time.Second)).first)
			}
			if !yield(b) {
				return
			}
		}
	}
}

func lengthOfEvents(events []Event) time.Duration {
	var most time.Duration
	for _, e := range events {
		most = max(most, e.Length+reach*time.Second)
	}
	return most
}
