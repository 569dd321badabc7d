// Package zones decides for which zone a node asks for jobs next, and when. It is pure.
//
// Floor 2: may import jobs.
package zones

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"muster/jobs"
)

// Never is an instant of the boot clock that is never reached.
const Never = time.Duration(math.MaxInt64)

// Prefix begins the names of zones in the list of services that do not answer.
const Prefix = "zone "

// A Zone is one queue that the node works for.
type Zone struct {
	Name   string
	Known  bool          // the lost jobs of earlier masters have been reported
	Busy   bool          // a call is under way; a zone has one at a time
	again  bool          // a hint came while busy: the answer may be older than the hint
	Asked  time.Duration // until then an idle child looks; 0: none does
	hinted time.Duration // when the last hint came
	Closed bool          // a reload has removed it
	Due    time.Duration // when to ask for jobs next
	Looked time.Duration // when the last call was answered
	Redis  jobs.Micros   // Redis' time of that answer; 0: there was none yet
	Why    string        // why nothing starts there, and until when; empty: jobs start
}

// Zones are those that a node works for.
type Zones []*Zone

// Answered notes the times in a reply of the zone, and when it came.
func (z *Zone) Answered(r jobs.Reply, now, poll time.Duration) {
	z.Busy = false
	z.Looked, z.Redis = now, r.Now
	z.Due = now + rest(r, poll)
	if z.again {
		z.again, z.Due = false, now
	}
}

// Nothing says in which zones nothing starts, and which do not answer; empty: in all is work.
func (l Zones) Nothing(failing map[string]bool) string {
	var list []string
	for _, z := range l {
		switch {
		case failing[Prefix+z.Name]:
			list = append(list, "zone "+z.Name+" does not answer")
		case z.Why != "":
			list = append(list, "zone "+z.Name+" "+z.Why)
		}
	}
	return strings.Join(list, "; ")
}

// Quiet returns when to ask again after the queue had no due job: at the instant of Redis' clock
// that a child has heard, or after poll if that is not known. Redis' clock is compared with itself
// only: our own clock measures the time since its last answer.
func (z *Zone) Quiet(at jobs.Micros, now, poll time.Duration) time.Duration {
	if at == 0 || z.Redis == 0 {
		return now + poll
	}
	return min(z.Looked+at.Sub(z.Redis), now+poll)
}

// Hint makes the zone due now, because it may have a due job.
func (z *Zone) Hint(now time.Duration) {
	z.Due, z.hinted = now, now
	z.again = z.Busy
}

// Heard notes that a child asks the queue no more, and when the zone is due by the answer that the
// child got. asked is when it asked: a hint that is not older may be of a job that it missed.
func (z *Zone) Heard(due, asked, now time.Duration) {
	z.Asked, z.Due = 0, due
	if z.hinted >= asked {
		z.Due = now
	}
}

// free reports whether nobody asks for jobs of the zone.
func (z *Zone) free(now time.Duration) bool { return z.Known && !z.Busy && z.Asked <= now }

// rest returns how long the zone has no due job after a reply, at most poll.
func rest(r jobs.Reply, poll time.Duration) time.Duration {
	switch {
	case r.Status == jobs.StatusJobs || r.Status == jobs.StatusMore:
		return 0
	case r.Status == jobs.StatusHalted || r.Next == 0:
		return poll
	}
	return min(max(r.Next.Sub(r.Now), 0), poll)
}

// Hint makes all zones due now, because a hint does not name its zone.
func (l Zones) Hint(now time.Duration) {
	for _, z := range l {
		z.Hint(now)
	}
}

// Named returns the zone of that name, or a closed zone if the node does not work for it any
// more.
func (l Zones) Named(name string) *Zone {
	i := slices.IndexFunc(l, func(z *Zone) bool { return z.Name == name })
	if i < 0 {
		return &Zone{Name: name, Closed: true}
	}
	return l[i]
}

// Next returns the due zone with the fewest slots in use, which are counted by zone; among
// equals, the one that has waited longest since its last answer. Without this rule a zone that
// has all slots but one would also get the last one, because its own children ask for it.
func (l Zones) Next(now time.Duration, count map[string]int) *Zone {
	var next *Zone
	for _, z := range l {
		if z.free(now) && z.Due <= now && (next == nil || cmp.Or(
			cmp.Compare(count[z.Name], count[next.Name]), cmp.Compare(z.Looked, next.Looked)) < 0) {
			next = z
		}
	}
	return next
}

// Turn returns the instant at which a zone without a child has waited for a turn: since it is due,
// since its last answer, and since slots were shared last.
func (l Zones) Turn(count map[string]int, shared, lasts time.Duration) (at time.Duration) {
	at = Never
	for _, z := range l {
		if z.Known && !z.Busy && count[z.Name] == 0 {
			at = min(at, max(z.Due, z.Looked, shared)+lasts)
		}
	}
	return at
}

// FirstDue returns the instant at which the first zone is due.
func (l Zones) FirstDue() time.Duration {
	first := Never
	for _, z := range l {
		if z.Known && !z.Busy {
			first = min(first, max(z.Due, z.Asked))
		}
	}
	return first
}
