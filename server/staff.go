package server

import (
	"context"
	"maps"
	"slices"
	"strings"

	"muster/jobs"
)

// noNode says of the zones of a task that no node begins anything there. Without a task it is
// about those zones of which everybody should hear.
func (s *Server) noNode(ctx context.Context, task string) (map[string]string, error) {
	staff, err := s.queue.Hub.Nodes.Staff(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	if task != "" {
		id, err := jobs.ParseTaskID(task)
		if err != nil {
			return nil, refusal(mistakes("query.task", err))
		}
		t, err := s.queue.Read.Tasks.Task(ctx, id)
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
		if z.Alarming(s.stock.HasZone(zone)) {
			out[zone] = z.Missing()
		}
	}
	return out, nil
}

// unstaffed says in health which zones have no node; empty: none that should have one.
func (s *Server) unstaffed(ctx context.Context) string {
	missing, err := s.noNode(ctx, "")
	if err != nil {
		return "" // Redis that is away is said already
	}
	var all []string
	for _, zone := range slices.Sorted(maps.Keys(missing)) {
		all = append(all, missing[zone])
	}
	return strings.Join(all, "; ")
}
