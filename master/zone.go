package master

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"muster/internal/proc"
	"muster/jobs"
)

// A zone is one queue that the node works for.
type zone struct {
	name   string
	known  bool          // what an earlier master left behind has been told
	busy   bool          // a call is under way; there is only one a time
	again  bool          // a hint came while busy: the answer may be older
	closed bool          // a reload has removed it
	due    time.Duration // when to look next
	looked time.Duration // when the last look was answered
	redis  jobs.Micros   // Redis' time of that answer; 0: none yet
	why    string        // nothing starts there, with the end of it; empty: it does
}

// answered notes what the zone said of its time, and when it said it.
func (z *zone) answered(r jobs.Reply, now, poll time.Duration) {
	z.busy = false
	z.looked, z.redis = now, r.Now
	z.due = now + rest(r, poll)
	if z.again {
		z.again, z.due = false, now
	}
}

// explain notes why nothing starts in a zone, and says it when it changes.
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

// noteZones shows in which zones nothing starts, or which do not answer.
func (n *node) noteZones() {
	var list []string
	for _, z := range n.zones {
		switch {
		case n.face.failing[zonePrefix+z.name]:
			list = append(list, "zone "+z.name+" does not answer")
		case z.why != "":
			list = append(list, "zone "+z.name+" "+z.why)
		}
	}
	n.note(&n.face.notes.zones, strings.Join(list, "; "))
}

// next moves the next look to an instant of Redis' clock that a child has heard.
// 0 is not known: then look at once.
func (z *zone) next(at jobs.Micros, now, poll time.Duration) {
	if at == 0 || z.redis == 0 {
		z.due = now
		return
	}
	// Redis' clock is compared with itself only. What has passed since its last
	// answer is measured by ours.
	z.due = min(z.looked+at.Sub(z.redis), now+poll)
}

// hint is a hint that something may be due.
func (z *zone) hint(now time.Duration) {
	z.due = now
	z.again = z.busy
}

// rest is how long nothing is due after a reply, at most poll.
func rest(r jobs.Reply, poll time.Duration) time.Duration {
	switch {
	case r.Status == jobs.StatusJobs || r.Status == jobs.StatusMore:
		return 0
	case r.Status == jobs.StatusHalted || r.Next == 0:
		return poll
	}
	return min(max(r.Next.Sub(r.Now), 0), poll)
}

// woken looks at all zones, because one of them has something.
func (n *node) woken() {
	now := proc.Boot()
	for _, z := range n.zones {
		z.hint(now)
	}
}

// zone returns the zone of that name; a closed one if the node does not work for
// it any more.
func (n *node) zone(name string) *zone {
	i := slices.IndexFunc(n.zones, func(z *zone) bool { return z.name == name })
	if i < 0 {
		return &zone{name: name, closed: true}
	}
	return n.zones[i]
}

// nextZone is the zone that is due and has the fewest slots; of these the one that
// was not looked at for the longest time. A zone that has all but one would else
// get the one too, because it is its children that look.
func (n *node) nextZone(now time.Duration) *zone {
	count := n.served()
	var next *zone
	for _, z := range n.zones {
		if z.known && !z.busy && z.due <= now && (next == nil || cmp.Or(
			cmp.Compare(count[z.name], count[next.name]), cmp.Compare(z.looked, next.looked)) < 0) {
			next = z
		}
	}
	return next
}

// served counts the slots in use of each zone.
func (n *node) served() map[string]int {
	count := map[string]int{}
	for _, s := range n.slots {
		count[s.zone]++
	}
	return count
}

// firstDue is when a zone is due next.
func (n *node) firstDue() time.Duration {
	first := never
	for _, z := range n.zones {
		if z.known && !z.busy {
			first = min(first, z.due)
		}
	}
	return first
}

// recover finds out which jobs the slots of this node have in a zone, and tells
// that those are lost whose slot nobody uses. Nothing is taken in the zone before,
// because a take would make Redis forget what its slot had.
func (n *node) recover(z *zone) {
	var held map[string][]jobs.ID
	z.busy = true
	n.call(z.name, func(ctx context.Context) (err error) {
		held, err = n.queue.Held(ctx, z.name, n.name)
		return err
	}, func() {
		n.tellLost(z, n.unused(z, held))
	})
}

// unused returns the slots that have jobs in the zone and no process.
func (n *node) unused(z *zone, held map[string][]jobs.ID) []string {
	var names []string
	for name, ids := range held {
		s := n.slots[name]
		switch {
		case len(ids) == 0:
		case s == nil || s.orphan == nil && s.zone != z.name:
			names = append(names, name)
		case s.orphan != nil:
			s.orphan.jobs = ids
			n.face.changed = true
		}
	}
	slices.Sort(names)
	return names
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
		z.known, z.busy, z.due = true, false, proc.Boot()
	})
}
