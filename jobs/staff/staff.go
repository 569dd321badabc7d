// Package staff says which nodes begin jobs of a zone, why none does, and when a node of another
// group must stand in. Pure.
//
// Floor 2: may import jobs.
package staff

import (
	"fmt"
	"slices"
	"strings"

	"muster/jobs"
)

// A Zone lists the nodes that begin jobs of a zone.
type Zone struct {
	Zone    string
	Working int       // number of nodes that take jobs
	Leaving []string  // nodes that begin nothing, each with the reason
	Last    jobs.Time // when a node last worked there; not set: never, as far as known
	Open    int64     // tasks that have not ended
}

// Count counts nodes by zone. last holds the time at which a node last worked on each zone.
func Count(nodes []jobs.Node, last map[string]jobs.Time) map[string]*Zone {
	out := map[string]*Zone{}
	of := func(zone string) *Zone {
		if out[zone] == nil {
			out[zone] = &Zone{Zone: zone}
		}
		return out[zone]
	}
	for zone, at := range last {
		of(zone).Last = at
	}
	for _, n := range nodes {
		if n.State == jobs.NodeGone {
			continue
		}
		idle := Idle(n)
		for _, zone := range n.Zones {
			z := of(zone)
			if idle != "" {
				z.Leaving = append(z.Leaving, n.ID+" "+idle)
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

// Idle says why a node that lives begins no jobs; empty: it does.
func Idle(n jobs.Node) string {
	switch {
	case n.State == jobs.NodeDraining || n.State == jobs.NodeStopping:
		return "is " + n.State
	case n.Paused != nil:
		return "is " + n.Paused.Note
	case n.Governor != nil && n.Governor.Starved:
		return "takes nothing: " + strings.Join(n.Governor.Why, ", ")
	}
	return ""
}

// Present reports whether a node of the zone's own beats, whether it begins jobs or not. A node
// that stands in for others is not of the zone.
func Present(nodes []jobs.Node, zone string) bool {
	return slices.ContainsFunc(nodes, func(n jobs.Node) bool {
		return n.State != jobs.NodeGone && slices.Contains(n.Zones, zone) &&
			!slices.Contains(n.Standby, zone)
	})
}

// Missing explains that no node begins jobs of the zone, since when, and what to do; or is empty.
func (z Zone) Missing() string {
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
func (z Zone) Alarming(hosts bool) bool {
	return z.Working == 0 && (z.Open > 0 || hosts && !z.Last.IsZero())
}

// MissingOn explains that no node begins jobs of a zone; empty if a node does.
func MissingOn(all map[string]*Zone, zone string) string {
	if z := all[zone]; z != nil {
		return z.Missing()
	}
	return Zone{Zone: zone}.Missing()
}
