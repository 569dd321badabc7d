package jobs

import (
	"fmt"
	"strings"
)

// ZoneStaff says which nodes begin jobs of a zone.
type ZoneStaff struct {
	Zone    string
	Working int      // nodes that take jobs
	Leaving []string // nodes that end only what they have in hand, with their state
	Last    Time     // when a node was last seen at work; not set: none ever was, as far as is known
	Open    int64    // tasks that have not ended
}

// Staff counts nodes by zone. last is when one was last seen at work on each.
func Staff(nodes []Node, last map[string]Time) map[string]*ZoneStaff {
	out := map[string]*ZoneStaff{}
	of := func(zone string) *ZoneStaff {
		if out[zone] == nil {
			out[zone] = &ZoneStaff{Zone: zone}
		}
		return out[zone]
	}
	for zone, at := range last {
		of(zone).Last = at
	}
	for _, n := range nodes {
		if n.State == NodeGone {
			continue
		}
		for _, zone := range n.Zones {
			z := of(zone)
			if n.State == NodeDraining || n.State == NodeStopping {
				z.Leaving = append(z.Leaving, n.ID+" is "+n.State)
				continue
			}
			z.Working++
			if n.Seen.After(z.Last.Time) {
				z.Last = n.Seen
			}
		}
	}
	return out
}

// Missing says that no node begins jobs of the zone, since when, and what to do; empty: one does.
func (z ZoneStaff) Missing() string {
	words := "no node works on zone " + z.Zone
	switch {
	case z.Working > 0:
		return ""
	case len(z.Leaving) > 0:
		return fmt.Sprintf("%s but to end what it has in hand (%s): `muster nodes` shows them; start "+
			"another one with `muster master`", words, strings.Join(z.Leaving, ", "))
	case z.Last.IsZero():
		return words + ", and none has yet, as far as is known: start one with `muster master`, and " +
			"see it in `muster nodes`"
	}
	return fmt.Sprintf("%s since %s: `muster nodes` shows which are gone; start one with "+
		"`muster master`", words, z.Last)
}

// Alarming tells whether somebody should hear of a zone without a node though nobody asked for it:
// there is work in it, or a node was there. hosts tells whether the inventory has hosts in it. A
// new house in which nobody has submitted anything is none, nor is a zone that was given up.
func (z ZoneStaff) Alarming(hosts bool) bool {
	return z.Working == 0 && (z.Open > 0 || hosts && !z.Last.IsZero())
}

// MissingOn says that no node begins jobs of a zone; empty: one does.
func MissingOn(all map[string]*ZoneStaff, zone string) string {
	if z := all[zone]; z != nil {
		return z.Missing()
	}
	return ZoneStaff{Zone: zone}.Missing()
}
