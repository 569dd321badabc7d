package staff

import (
	"slices"
	"time"

	"muster/jobs"
)

// A Standby decides for a node when it stands in for the nodes of other zones: when none of a
// zone's own has beaten for a time, until one has beaten again for that time. A node that beats and
// takes nothing, because it is paused or starved, is there: whoever paused it has decided that.
type Standby struct {
	after map[string]time.Duration
	zones map[string]*away
	last  time.Duration // of the looks
}

// away holds what a standby knows of a zone. Its instants are those of one clock.
type away struct {
	seen    time.Duration // a node of the zone was last there then
	back    time.Duration // since when one is there
	is      bool          // one is there
	serving bool
}

// NewStandby returns a standby for zones, each with its time.
func NewStandby(after map[string]time.Duration) *Standby {
	return &Standby{after: after, zones: map[string]*away{}}
}

// blind is the time between two looks after which nothing is known of what happened in between. The
// time of a zone then begins anew: Redis may have been away, and nodes could not beat.
const blind = 15 * time.Second

// Resume notes the zones that an earlier process of the node served at its end.
func (s *Standby) Resume(now time.Duration, zones []string) {
	for _, zone := range zones {
		if s.after[zone] > 0 {
			s.zones[zone] = &away{seen: now, serving: true}
		}
	}
	s.last = now
}

// Look looks at the nodes and returns the zones to serve, sorted.
func (s *Standby) Look(now time.Duration, nodes []jobs.Node) []string {
	gap := now-s.last > blind
	s.last = now
	var serve []string
	for zone, after := range s.after {
		z := s.zones[zone]
		if z == nil {
			z = &away{seen: now}
			s.zones[zone] = z
		}
		z.look(now, after, Present(nodes, zone), gap)
		if z.serving {
			serve = append(serve, zone)
		}
	}
	slices.Sort(serve)
	return serve
}

func (z *away) look(now, after time.Duration, present, gap bool) {
	if gap {
		z.seen, z.is = now, false
	}
	if present {
		if !z.is {
			z.back = now
		}
		z.is, z.seen = true, now
		if z.serving && now-z.back >= after {
			z.serving = false
		}
		return
	}
	z.is = false
	if now-z.seen >= after {
		z.serving = true
	}
}
