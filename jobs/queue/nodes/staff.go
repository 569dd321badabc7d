package nodes

import (
	"context"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/jobs/staff"
)

// Staff returns for each zone that was ever used, or has a node, which nodes begin jobs there.
func (q *Nodes) Staff(ctx context.Context) (map[string]*staff.Zone, error) {
	out, err := q.Working(ctx)
	if err != nil {
		return nil, err
	}
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return nil, err
	}
	open := make([]*redis.IntCmd, len(zones))
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, zone := range zones {
			open[i] = p.ZCard(ctx, keys.Zone(zone, "open", ""))
		}
		return nil
	})
	if err != nil && !queue.Away(err) {
		return nil, q.c.Say("nodes", err)
	}
	for i, zone := range zones {
		if out[zone] == nil {
			out[zone] = &staff.Zone{Zone: zone}
		}
		out[zone].Open = open[i].Val()
	}
	return out, nil
}

// Working is Staff without the number of open tasks.
func (q *Nodes) Working(ctx context.Context) (map[string]*staff.Zone, error) {
	nodes, err := q.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := q.c.Redis().HGetAll(ctx, keys.Hub("staff", "")).Result()
	if err != nil {
		return nil, q.c.Say("nodes", err)
	}
	last := make(map[string]jobs.Time, len(kept))
	for zone, text := range kept {
		at, _ := jobs.ParseMicros(text)
		last[zone] = jobs.TimeOf(at)
	}
	return staff.Count(nodes, last), nil
}

// NoteStaff stores when a node was last at work on each zone, because a node that ends in an
// orderly way leaves no other trace.
func (q *Nodes) NoteStaff(ctx context.Context) error {
	all, err := q.Working(ctx)
	if err != nil {
		return err
	}
	var pairs []any
	for zone, z := range all {
		if z.Working > 0 && !z.Last.IsZero() {
			pairs = append(pairs, zone, jobs.MicrosOf(z.Last.Time).String())
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return q.c.Say("nodes", q.c.Redis().HSet(ctx, keys.Hub("staff", ""), pairs...).Err())
}
