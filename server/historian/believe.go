package historian

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/keys"
)

// believer decides which events of a zone history believes. With the Redis user of a node
// of a zone one can write anything into that zone's stream, the ends of jobs of other zones
// too. The hub has the zones of a task, and the inventory of a zone its hosts: a node can write
// neither.
type believer struct {
	queue Members
	task  func(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	stock func() (*fleet.Inventory, string) // with its version
	log   hclog.Logger
	said  map[string]bool // zones that the log has named already
}

// events returns those events of a zone's stream that concern a task or job with a part in
// that zone, or neither.
func (b believer) events(ctx context.Context, zone string, list []jobs.Happening) (
	[]jobs.Happening, error) {
	if zone == keys.HubZone {
		return list, nil // no node can write there
	}
	hosts := map[jobs.TaskID][]string{}
	for _, e := range list {
		if id := history.TaskOf(e.Object); id != "" {
			hosts[id] = append(hosts[id], hostOf(e.Object))
		}
	}
	in := make(map[jobs.TaskID]map[string]bool, len(hosts))
	for id, names := range hosts {
		t, err := b.task(ctx, id)
		if err == nil {
			in[id], err = b.members(ctx, zone, t, names)
		}
		if err != nil {
			return nil, err
		}
	}
	foreign := func(e jobs.Happening) bool {
		id := history.TaskOf(e.Object)
		return id != "" && !in[id][hostOf(e.Object)]
	}
	if i := slices.IndexFunc(list, foreign); i >= 0 {
		b.say(zone, list[i])
		list = slices.DeleteFunc(slices.Clone(list), foreign)
	}
	return list, nil
}

// say logs once of each zone that history does not believe it.
func (b believer) say(zone string, e jobs.Happening) {
	if b.said[zone] {
		return
	}
	b.said[zone] = true
	b.log.Error("a zone tells of jobs that are not in it: history keeps nothing of that; somebody "+
		"may have the Redis user of a node of this zone", "zone", zone, "event", e.Event,
		"object", e.Object, "help", "give that user a new password: docs/SECURITY.md")
}

// members reports which hosts of a task a zone has. The host "" stands for the task itself.
func (b believer) members(ctx context.Context, zone string, t jobs.TaskInfo, names []string) (
	map[string]bool, error) {
	known := len(t.Zones) > 0
	if known && !slices.Contains(t.Zones, zone) {
		return nil, nil
	}
	stock, version := b.stock()
	in := map[string]bool{}
	switch {
	case known && (stock == nil || version != t.Inventory):
		slices.Sort(names)
		names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
		found, err := b.queue.HostsIn(ctx, zone, t.Inventory, names)
		if err != nil {
			return nil, err
		}
		maps.Copy(in, found)
	case stock == nil: // nobody knows the task or its hosts
		for _, name := range names {
			in[name] = true
		}
	default:
		for _, name := range names {
			host, ok := stock.Host(name)
			in[name] = ok && host.Zone == zone || !ok && !known
		}
	}
	in[""] = true
	return in, nil
}

// hostOf returns the host of the job that an event concerns; empty: it concerns the task.
func hostOf(object string) string {
	_, host, _ := strings.Cut(object, ":")
	return host
}
