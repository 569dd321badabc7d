package hub

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// HostsIn reports which of some hosts a zone has in an inventory. Only servers write the data that
// it reads, so a stolen user of a node cannot change the answer. If Redis does not have this
// version of the zone, it has forgotten the hosts of the zone, and HostsIn reports all of them.
func (q *Inventory) HostsIn(ctx context.Context, zone, version string, names []string) (
	map[string]bool, error) {
	in := make(map[string]bool, len(names))
	key := keys.Zone(zone, "hosts:", version)
	for part := range slices.Chunk(names, codec.ChunkMax) {
		var there *redis.IntCmd
		has := make([]*redis.BoolCmd, len(part))
		_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
			there = p.Exists(ctx, key)
			for i, name := range part {
				has[i] = p.HExists(ctx, key, name)
			}
			return nil
		})
		if err != nil {
			return nil, q.c.Say("hosts", err)
		}
		for i, name := range part {
			in[name] = has[i].Val() || there.Val() == 0
		}
	}
	return in, nil
}

// HostsOf counts the hosts of some zones in an inventory, as Redis has them. A zone whose Redis is
// away is left out.
func (q *Inventory) HostsOf(ctx context.Context, version string, zones []string) (map[string]int,
	error) {
	counts := make([]*redis.IntCmd, len(zones))
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, zone := range zones {
			counts[i] = p.HLen(ctx, keys.Zone(zone, "hosts:", version))
		}
		return nil
	})
	if err != nil && !queue.Away(err) {
		return nil, q.c.Say("hosts", err)
	}
	of := make(map[string]int, len(zones))
	for i, zone := range zones {
		if counts[i].Err() == nil {
			of[zone] = int(counts[i].Val())
		}
	}
	return of, nil
}
