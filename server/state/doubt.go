package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster/jobs"
	"muster/server/calendar"
	"muster/server/web"
	"muster/trust"
	"muster/windows"
)

// doubtOfTimes names the nodes and servers that do not know the timetable, or read it otherwise;
// empty if there are none.
func (s Health) doubtOfTimes(ctx context.Context) string {
	var all []string
	if _, _, err := s.Calendar.Kept(ctx); errors.Is(err, calendar.ErrUnread) {
		all = append(all, err.Error())
	}
	if doubt := s.Calendar.Doubt(ctx); doubt != nil {
		all = append(all, fmt.Sprintf("the timetable in Redis is not believed, and nodes that require "+
			"signatures begin nothing: %v; look at it (`muster windows ls`), then `muster windows adopt` "+
			"has it signed", doubt))
	}
	// Another line of health says that Redis is away.
	nodes, _ := s.Queue.Nodes.Nodes(ctx)
	all = append(all, doubtsOf(nodes)...)
	for _, n := range nodes {
		if text := otherZones(n); text != "" {
			all = append(all, "node "+n.ID+" has "+text)
		}
	}
	others, _ := s.SayZones(ctx)
	for name, data := range others {
		if data != windows.ZoneData {
			all = append(all, fmt.Sprintf("server %s has time zone data %s, and this one %s: update the "+
				"older", web.Clip(name), web.Clip(data), windows.ZoneData))
		}
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// SayZones tells the other servers which time zone data this one has, and learns theirs.
func (s Health) SayZones(ctx context.Context) (map[string]string, error) {
	return s.Queue.Zoning.SayZones(ctx, s.Who(), windows.ZoneData)
}

// doubtsOf returns a sentence for each node that begins no jobs: it cannot read whom it trusts, or
// does not know the timetable.
func doubtsOf(nodes []jobs.Node) []string {
	var all []string
	for _, n := range nodes {
		if why, unread := strings.CutPrefix(n.Doubt, trust.Unread+": "); unread {
			all = append(all, fmt.Sprintf("node %s cannot read whom it trusts and begins no jobs: %s; "+
				"`muster trust check` on it says more", n.ID, web.Clip(why)))
		} else if n.Doubt != "" {
			all = append(all, fmt.Sprintf("node %s does not know what is agreed about times and defers "+
				"jobs: %s", n.ID, web.Clip(n.Doubt)))
		}
	}
	return all
}

// otherZones says that a node has another time zone database than this server: if a country has
// changed its clocks, the two put a window at two times. It returns an empty text if both have the
// same.
func otherZones(n jobs.Node) string {
	if n.Clock.Zones == "" || n.Clock.Zones == windows.ZoneData {
		return ""
	}
	return fmt.Sprintf("time zone data %s, and this server %s: update the older",
		web.Clip(n.Clock.Zones),
		windows.ZoneData)
}
