package state

import (
	"context"
	"maps"
	"slices"
	"strings"

	"muster/jobs"
	"muster/jobs/staff"
	"muster/server/stock"
	"muster/server/web"
)

// noNode returns a sentence for each zone of a task in which no node begins work. Without a task it
// looks at the zones for which this is an alarm.
func noNode(ctx context.Context, q Queue, hosts *stock.Store, task string) (map[string]string,
	error) {
	all, err := q.Nodes.Staff(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	if task != "" {
		id, err := jobs.ParseTaskID(task)
		if err != nil {
			return nil, web.Refusal(web.Mistakes("query.task", err))
		}
		t, err := q.Tasks.Task(ctx, id)
		if err != nil {
			return nil, err
		}
		if t.State != jobs.TaskEnded {
			out = missingOn(all, t.Zones)
		}
		return out, nil
	}
	for zone, z := range all {
		if z.Alarming(hosts.HasZone(zone)) {
			out[zone] = z.Missing()
		}
	}
	return out, nil
}

// noNodeIn explains for each of some zones in which no node begins jobs why that is so.
func noNodeIn(ctx context.Context, q Queue, zones []string) (map[string]string, error) {
	all, err := q.Nodes.Staff(ctx)
	if err != nil {
		return nil, err
	}
	return missingOn(all, zones), nil
}

func missingOn(all map[string]*staff.Zone, zones []string) map[string]string {
	out := map[string]string{}
	for _, zone := range zones {
		if text := staff.MissingOn(all, zone); text != "" {
			out[zone] = text
		}
	}
	return out
}

// unstaffed returns the sentence of health about zones without a node; empty if all that need one
// have one.
func (s Health) unstaffed(ctx context.Context) string {
	missing, err := noNode(ctx, s.Queue, s.Stock, "")
	if err != nil {
		return "" // Redis that is away is said already
	}
	var all []string
	for _, zone := range slices.Sorted(maps.Keys(missing)) {
		all = append(all, missing[zone])
	}
	return strings.Join(all, "; ")
}
