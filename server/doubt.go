package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster/jobs"
	"muster/server/calendar"
	"muster/server/web"
	"muster/windows"
)

// doubtOfTimes says who of the fleet does not know what is agreed about times, and so begins
// nothing; empty: everybody knows.
func (s wellbeing) doubtOfTimes(ctx context.Context) string {
	var all []string
	if _, _, err := s.calendar.Kept(ctx); errors.Is(err, calendar.ErrUnread) {
		all = append(all, err.Error())
	}
	// Redis that is away is said already.
	nodes, _ := s.queue.Hub.Nodes.Nodes(ctx)
	all = append(all, doubtsOf(nodes)...)
	for _, n := range nodes {
		if text := otherZones(n); text != "" {
			all = append(all, "node "+n.ID+" has "+text)
		}
	}
	others, _ := s.sayZones(ctx)
	for name, data := range others {
		if data != windows.ZoneData {
			all = append(all, fmt.Sprintf("server %s has time zone data %s, and this one %s: update the "+
				"older", web.Clip(name), web.Clip(data), windows.ZoneData))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// sayZones tells the other servers which time zone data this one has, and learns theirs.
func (s wellbeing) sayZones(ctx context.Context) (map[string]string, error) {
	return s.queue.Hub.Times.Zones.SayZones(ctx, s.who(), windows.ZoneData)
}

// doubtsOf are those of nodes.
func doubtsOf(nodes []jobs.Node) []string {
	var all []string
	for _, n := range nodes {
		if n.Doubt != "" {
			all = append(all, fmt.Sprintf("node %s does not know what is agreed about times and defers "+
				"jobs: %s", n.ID, web.Clip(n.Doubt)))
		}
	}
	return all
}

// otherZones says that a node goes by another time zone database than this server: where a
// country has changed its clocks the two put a window at two times. Empty: it goes by the same.
func otherZones(n jobs.Node) string {
	if n.Clock.Zones == "" || n.Clock.Zones == windows.ZoneData {
		return ""
	}
	return fmt.Sprintf("time zone data %s, and this server %s: update the older",
		web.Clip(n.Clock.Zones),
		windows.ZoneData)
}
