package jobs

import (
	"fmt"
	"strings"
)

// ZoneStaff lists the nodes that begin jobs of a zone.
type ZoneStaff struct {
	Zone    string
	Working int      // number of nodes that take jobs
	Leaving []string // nodes that only end the jobs in hand, with their states
	Last    Time     // when a node last worked there; not set: never, as far as known
	Open    int64    // tasks that have not ended
}

// Staff counts nodes by zone. last holds the time at which a node last worked on each zone.
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

// Missing explains that no node begins jobs of the zone, since when, and what to do; or is empty.
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

// Alarming reports whether a zone without a node needs an alert: it has open tasks, or it has
// hosts and had a node before. hosts says whether the inventory has hosts in it. A new
// installation without tasks needs no alert, nor does a zone that was given up.
func (z ZoneStaff) Alarming(hosts bool) bool {
	return z.Working == 0 && (z.Open > 0 || hosts && !z.Last.IsZero())
}

// MissingOn explains that no node begins jobs of a zone; empty if a node does.
func MissingOn(all map[string]*ZoneStaff, zone string) string {
	if z := all[zone]; z != nil {
		return z.Missing()
	}
	return ZoneStaff{Zone: zone}.Missing()
}
