package server

import (
	"context"
	"maps"
	"slices"
	"strings"

	"muster/jobs"
	"muster/server/stock"
	"muster/server/web"
)

// noNode says of the zones of a task that no node begins anything there. Without a task it is
// about those zones of which everybody should hear.
func noNode(ctx context.Context, q Stores, hosts *stock.Store, task string) (map[string]string,
	error) {
	staff, err := q.Hub.Nodes.Staff(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	if task != "" {
		id, err := jobs.ParseTaskID(task)
		if err != nil {
			return nil, web.Refusal(web.Mistakes("query.task", err))
		}
		t, err := q.Read.Tasks.Task(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, zone := range t.Zones {
			if text := jobs.MissingOn(staff, zone); text != "" && t.State != jobs.TaskEnded {
				out[zone] = text
			}
		}
		return out, nil
	}
	for zone, z := range staff {
		if z.Alarming(hosts.HasZone(zone)) {
			out[zone] = z.Missing()
		}
	}
	return out, nil
}

// unstaffed says in health which zones have no node; empty: none that should have one.
func (s wellbeing) unstaffed(ctx context.Context) string {
	missing, err := noNode(ctx, s.queue, s.stock, "")
	if err != nil {
		return "" // Redis that is away is said already
	}
	var all []string
	for _, zone := range slices.Sorted(maps.Keys(missing)) {
		all = append(all, missing[zone])
	}
	return strings.Join(all, "; ")
}
