package orders

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Pauses returns everything that an operator has paused or halted, even if a zone has not received
// the order yet.
func (q *Halts) Pauses(ctx context.Context) (jobs.Pauses, error) {
	out := jobs.Pauses{Zones: map[string]string{}, Customers: map[string]string{}}
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return out, err
	}
	cmds := make([]*redis.SliceCmd, len(zones))
	var halt, pauses *redis.MapStringStringCmd
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		halt = p.HGetAll(ctx, keys.Hub("halt", ""))
		pauses = p.HGetAll(ctx, keys.Hub("pauses", ""))
		for i, zone := range zones {
			cmds[i] = p.HMGet(ctx, keys.Zone(zone, "zone", ""), "halted", "paused", "customers")
		}
		return nil
	})
	if err != nil && !queue.Away(err) {
		return out, q.c.Say("pauses", err)
	}
	if halt.Val()["state"] == haltOn {
		out.Halted = halt.Val()["note"]
	}
	for _, o := range readOrders(pauses.Val()) {
		switch {
		case o.on && o.what == jobs.SwitchZone && slices.Contains(zones, o.name):
			out.Zones[o.name] = o.note
		case o.on && o.what == jobs.SwitchCustomer:
			out.Customers[o.name] = o.note
		}
	}
	for i, zone := range zones {
		if cmds[i].Err() != nil {
			continue // its Redis is away, and what was ordered for it is in the hub
		}
		if out.Halted == "" {
			out.Halted = codec.TextOf(cmds[i].Val(), 0)
		}
		if note := codec.TextOf(cmds[i].Val(), 1); note != "" {
			out.Zones[zone] = note
		}
		for customer, s := range codec.ReadCustomers(codec.TextOf(cmds[i].Val(), 2)) {
			out.Customers[customer] = s.Note
		}
	}
	return out, nil
}
