package master

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"muster/jobs"
)

// A zone is one queue that the node works for.
type zone struct {
	name   string
	known  bool          // the lost jobs of earlier masters have been reported
	busy   bool          // a call is under way; a zone has one at a time
	again  bool          // a hint came while busy: the answer may be older than the hint
	closed bool          // a reload has removed it
	due    time.Duration // when to ask for jobs next
	looked time.Duration // when the last call was answered
	redis  jobs.Micros   // Redis' time of that answer; 0: there was none yet
	why    string        // why nothing starts there, and until when; empty: jobs start
}

// zones are those that a node works for.
type zones []*zone

// answered notes the times in a reply of the zone, and when it came.
func (z *zone) answered(r jobs.Reply, now, poll time.Duration) {
	z.busy = false
	z.looked, z.redis = now, r.Now
	z.due = now + rest(r, poll)
	if z.again {
		z.again, z.due = false, now
	}
}

// explain notes why nothing starts in a zone, and logs each change of the reason.
func (n *node) explain(z *zone, r jobs.Reply) {
	why := r.Why
	if r.Status == jobs.StatusFrozen {
		why = "frozen until " + r.Next.Time().Format(time.RFC3339) + ": " + why
	}
	if why == z.why {
		return
	}
	z.why = why
	if why == "" {
		n.log.Info("work goes on", "zone", z.name)
	} else {
		left := max(r.Next.Sub(r.Now), 0).Round(time.Second)
		n.log.Warn("nothing starts", "zone", z.name, "why", why, "left", left)
	}
	n.noteZones()
}

// nothing says in which zones nothing starts, and which do not answer; empty: in all is work.
func (l zones) nothing(failing map[string]bool) string {
	var list []string
	for _, z := range l {
		switch {
		case failing[zonePrefix+z.name]:
			list = append(list, "zone "+z.name+" does not answer")
		case z.why != "":
			list = append(list, "zone "+z.name+" "+z.why)
		}
	}
	return strings.Join(list, "; ")
}

// noteZones shows the zones in which nothing starts, and those that do not answer.
func (n *node) noteZones() { n.face.note(&n.face.notes.zones, n.zones.nothing(n.face.failing)) }

// next sets when to ask again: at the instant of Redis' clock that a child has heard. If
// the instant is 0, nobody knows it, and the zone is due at once.
func (z *zone) next(at jobs.Micros, now, poll time.Duration) {
	if at == 0 || z.redis == 0 {
		z.due = now
		return
	}
	// Redis' clock is compared with itself only. Our own clock measures the time since its
	// last answer.
	z.due = min(z.looked+at.Sub(z.redis), now+poll)
}

// hint makes the zone due now, because it may have a due job.
func (z *zone) hint(now time.Duration) {
	z.due = now
	z.again = z.busy
}

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

// hint makes all zones due now, because a hint does not name its zone.
func (l zones) hint(now time.Duration) {
	for _, z := range l {
		z.hint(now)
	}
}

// named returns the zone of that name, or a closed zone if the node does not work for it any
// more.
func (l zones) named(name string) *zone {
	i := slices.IndexFunc(l, func(z *zone) bool { return z.name == name })
	if i < 0 {
		return &zone{name: name, closed: true}
	}
	return l[i]
}

// next returns the due zone with the fewest slots in use, which are counted by zone; among
// equals, the one that has waited longest since its last answer. Without this rule a zone that
// has all slots but one would also get the last one, because its own children ask for it.
func (l zones) next(now time.Duration, count map[string]int) *zone {
	var next *zone
	for _, z := range l {
		if z.known && !z.busy && z.due <= now && (next == nil || cmp.Or(
			cmp.Compare(count[z.name], count[next.name]), cmp.Compare(z.looked, next.looked)) < 0) {
			next = z
		}
	}
	return next
}

// turn returns the instant at which a zone without a child has waited for a turn: since it is due,
// since its last answer, and since slots were shared last.
func (l zones) turn(count map[string]int, shared, lasts time.Duration) (at time.Duration) {
	at = never
	for _, z := range l {
		if z.known && !z.busy && count[z.name] == 0 {
			at = min(at, max(z.due, z.looked, shared)+lasts)
		}
	}
	return at
}

// firstDue returns the instant at which the first zone is due.
func (l zones) firstDue() time.Duration {
	first := never
	for _, z := range l {
		if z.known && !z.busy {
			first = min(first, z.due)
		}
	}
	return first
}

// recover finds out which jobs the slots of this node have in a zone, and reports the jobs
// of slots without a process as lost. The node takes nothing in the zone before, because a
// take would make Redis forget the earlier jobs of its slot.
func (n *node) recover(z *zone) {
	var held map[string][]jobs.ID
	z.busy = true
	n.call(z.name, func(ctx context.Context) (err error) {
		held, err = n.queue.Held(ctx, z.name, n.name)
		return err
	}, func() {
		n.tellLost(z, n.slots.unused(z, held))
		n.face.changed = true // orphans may have got their jobs
	})
}

func (n *node) tellLost(z *zone, names []string) {
	n.call(z.name, func(ctx context.Context) error {
		for len(names) > 0 {
			_, err := n.queue.Lose(ctx, z.name, jobs.Loss{Node: n.name, Slot: names[0], Why: vanished})
			if err != nil {
				return err
			}
			names = names[1:]
		}
		return nil
	}, func() {
		z.known, z.busy, z.due = true, false, n.children.machine.Boot()
	})
}
