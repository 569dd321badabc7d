package master

import (
	"slices"
	"strings"
	"time"

	"muster/jobs"
	"muster/master/governor"
)

// An Allowance says how much work a node may take now. Jobs in hand go on, whatever it says.
type Allowance struct {
	Governor *jobs.Governor // what the machine can bear; nil: nobody has measured
	Cores    int            // the more children run, the fewer and the later begin others; 0: not so
	Paused   *jobs.Pause    // the order to take nothing; nil: there is none
	Zones    []string       // more zones to work for, in which the node stands in for others
}

// Begin sets the allowance before Run, so that nothing is taken before it is known.
func (m *Master) Begin(a Allowance) { m.first = a }

// Allow puts an allowance in the place of the one before.
func (m *Master) Allow(a Allowance) { m.tell(order{run: func(n *node) { n.slots.allow(n, a) }}) }

// allow puts an allowance in force. Children of a node that takes nothing end after the jobs in
// hand, because they would take the next ones themselves.
func (l slots) allow(n *node, a Allowance) {
	was, is := n.children.allowed.holds(), a.holds()
	zones := !slices.Equal(n.children.allowed.zones(n.cfg), a.zones(n.cfg))
	n.children.allowed = a
	n.face.changed = true
	switch {
	case is != "":
		if was == "" {
			n.log.Warn("nothing is taken", "why", is)
		}
		l.drain()
	case was != "":
		n.log.Info("jobs are taken again")
		n.zones.Hint(n.children.machine.Boot())
	}
	if zones {
		n.log.Info("zones change", "zones", strings.Join(a.zones(n.cfg), ","))
		n.changeZones()
		for _, s := range l {
			if s.child != nil && !slices.Contains(a.zones(n.cfg), s.zone) {
				s.child.drain()
			}
		}
	}
}

// holds says why the node takes nothing; empty: it does.
func (a Allowance) holds() string {
	switch {
	case a.Paused != nil:
		return a.Paused.Note
	case a.Governor != nil && a.Governor.Starved:
		return a.Governor.Why[0]
	}
	return ""
}

// zones returns the zones that the node works for, each once.
func (a Allowance) zones(c Config) []string {
	all := slices.Clone(c.Zones)
	for _, zone := range a.Zones {
		if !slices.Contains(all, zone) {
			all = append(all, zone)
		}
	}
	return all
}

// limit returns how many children a node may have that is configured for so many.
func (a Allowance) limit(configured int) int {
	if a.Governor == nil {
		return configured
	}
	return min(configured, a.Governor.Children)
}

// wait returns the instant from which the next child may begin. begun is when one began last.
func (a Allowance) wait(l slots, failing map[string]bool, begun, now time.Duration) time.Duration {
	switch {
	case a.holds() != "":
		return never
	case a.Cores == 0:
		return now
	}
	starting, busy := l.starting(failing), l.busy()
	if starting >= governor.Starting(a.Cores, busy-starting) {
		return never // a child that is ready, or dies, wakes the node
	}
	if begun > 0 && begun < now {
		return begun + governor.Delay(busy)
	}
	return now
}

// busy counts the slots in use but those of idle children.
func (l slots) busy() int {
	count := 0
	for _, s := range l {
		if s.child == nil || !s.child.idle() {
			count++
		}
	}
	return count
}

// starting counts children that have not reported yet, and takes that may be answered.
func (l slots) starting(failing map[string]bool) int {
	count := 0
	for _, s := range l {
		takes := s.call != nil && s.call.Kind == callTake && !s.waits(failing)
		if takes || s.child != nil && !s.child.ready {
			count++
		}
	}
	return count
}
