package master

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"muster/jobs"
	"muster/master/zones"
)

// slots are the slots of a node that are in use, by name.
type slots map[string]*slot

// inUse returns the slots in use, sorted by number.
func (l slots) inUse() []*slot {
	return slices.SortedFunc(maps.Values(l), func(a, b *slot) int { // by numbers without leading zeros
		return cmp.Or(len(a.name)-len(b.name), strings.Compare(a.name, b.name))
	})
}

// unready counts the children that have not reported yet.
func (l slots) unready() int {
	count := 0
	for _, s := range l {
		if s.child != nil && !s.child.ready {
			count++
		}
	}
	return count
}

// limit returns how many slots a node may use. Those that wait for a zone that does not answer do
// not count while there are other zones and the machine bears what is configured, but there are
// never more than twice as many.
func (l slots) limit(n *node) int {
	stuck, away := 0, map[string]bool{}
	for _, s := range l {
		if s.waits(n.face.failing) || s.child != nil && s.child.report.Away {
			stuck, away[s.zone] = stuck+1, true
		}
	}
	limit := n.children.allowed.limit(n.cfg.Children)
	if limit < n.cfg.Children || len(away) >= len(n.children.allowed.zones(n.cfg)) {
		return limit
	}
	return limit + min(limit, stuck)
}

// waits reports whether the slot has a call to a zone that does not answer.
func (s *slot) waits(failing map[string]bool) bool {
	return s.call != nil && failing[zones.Prefix+s.zone]
}

// served counts the slots in use of each zone.
func (l slots) served() map[string]int {
	count := map[string]int{}
	for _, s := range l {
		count[s.zone]++
	}
	return count
}

// mostServed returns a slot of the zone with the most children, counting only children
// without the order to end. Of these slots it returns the one whose child has the earliest
// deadline.
func (l slots) mostServed() *slot {
	count := map[string]int{}
	for _, s := range l {
		if s.child != nil && !s.child.drained {
			count[s.zone]++
		}
	}
	var most *slot
	for _, s := range l.inUse() {
		if s.child == nil || s.child.drained {
			continue
		}
		if most == nil || cmp.Or(cmp.Compare(count[most.zone], count[s.zone]),
			cmp.Compare(s.child.deadline, most.child.deadline)) < 0 {
			most = s
		}
	}
	return most
}

// unused returns the slots that have jobs in the zone and no process. Orphans are told which jobs
// they have.
func (l slots) unused(z *zones.Zone, held map[string][]jobs.ID) []string {
	var names []string
	for name, ids := range held {
		s := l[name]
		switch {
		case len(ids) == 0:
		case s == nil || s.orphan == nil && s.zone != z.Name:
			names = append(names, name)
		case s.orphan != nil:
			s.orphan.jobs = ids
		}
	}
	slices.Sort(names)
	return names
}

// drain orders all children to end after the jobs in hand.
func (l slots) drain() {
	for _, s := range l {
		if s.child != nil {
			s.child.drain()
		}
	}
}

// terminate sends TERM to all children.
func (l slots) terminate(log hclog.Logger) {
	for _, s := range l {
		if s.child == nil {
			continue
		}
		if err := s.child.proc.Terminate(); err != nil {
			log.Error("child cannot be signalled", "slot", s.name, "error", err)
		}
	}
}
