package server

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"

	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/keys"
)

// Membership tells which hosts a zone has in an inventory.
type Membership interface {
	HostsIn(ctx context.Context, zone, version string, names []string) (map[string]bool, error)
	HostsOf(ctx context.Context, version string, zones []string) (map[string]int, error)
}

// believer decides which events of a zone history believes. Whoever has the Redis user of a
// node of a zone can write anything into that zone's stream, the ends of jobs of other zones
// too. Which zones a task has stands in the hub, and which hosts a zone has in its inventory:
// a node can write neither.
type believer struct {
	queue Membership
	task  func(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	stock func() *stock // nil: this server has no inventory
	log   hclog.Logger
	said  map[string]bool // zones of which the log says it already
}

// events returns those events of a zone's stream that are about a task or job with a part in
// that zone, or about neither.
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

// say tells once of each zone that it is not believed.
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
	var stock *stock
	if b.stock != nil {
		stock = b.stock()
	}
	in := map[string]bool{}
	switch {
	case known && (stock == nil || stock.version != t.Inventory):
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

// hostOf is the host of a job that an event is about; empty: it is about the task.
func hostOf(object string) string {
	_, host, _ := strings.Cut(object, ":")
	return host
}
