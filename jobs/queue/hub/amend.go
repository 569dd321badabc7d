package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// amend applies the present limits also to the open tasks of a zone that were submitted with an
// earlier inventory than the one in force. It only adds limits to hosts: a job that holds some
// releases what it has.
func (q *Inventory) amend(ctx context.Context, zone, inForce string) error {
	names, err := q.c.Redis().HKeys(ctx, keys.Zone(zone, "limits", "")).Result()
	if err != nil || len(names) == 0 {
		return q.c.Say("limits", err)
	}
	slices.Sort(names)
	limits := make([]fleet.Limit, len(names))
	for i, name := range names {
		limits[i].Name = name
	}
	open, err := q.openTasks(ctx, zone)
	if err != nil {
		return err
	}
	for version, unguarded := range open {
		if version == inForce {
			continue // its tasks were submitted with these limits
		}
		if err := q.amendVersion(ctx, zone, version, limits, unguarded); err != nil {
			return err
		}
	}
	return nil
}

// AmendInForce calls amend for the inventory in force.
func (q *Inventory) AmendInForce(ctx context.Context, zone string) error {
	inventory, err := q.Inventory(ctx)
	if err != nil {
		return err
	}
	return q.amend(ctx, zone, inventory.Version)
}

// openTasks returns the inventory versions of the open tasks of a zone, and for each version the
// tasks that need nothing but their hosts.
func (q *Inventory) openTasks(ctx context.Context, zone string) (map[string][]string, error) {
	out := map[string][]string{}
	for from := int64(0); ; from += codec.ChunkMax {
		ids, err := q.c.Redis().ZRange(ctx, keys.Zone(zone, "open", ""), from,
			from+codec.ChunkMax-1).Result()
		if err != nil || len(ids) == 0 {
			return out, q.c.Say("limits", err)
		}
		cmds, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range ids {
				p.HMGet(ctx, keys.Zone(zone, "task:", id), "inventory", "guard")
			}
			return nil
		})
		if err != nil {
			return nil, q.c.Say("limits", err)
		}
		for i, c := range cmds {
			v := c.(*redis.SliceCmd).Val()
			version := codec.TextOf(v, 0)
			if v[0] != nil && v[1] == nil {
				out[version] = append(out[version], ids[i])
			} else if v[0] != nil {
				out[version] = append(out[version], nil...)
			}
		}
	}
}

// amendVersion adds limits to the hosts of an inventory.
func (q *Inventory) amendVersion(ctx context.Context, zone, version string, limits []fleet.Limit,
	unguarded []string) error {
	more, covered, err := q.uncounted(ctx, zone, version, limits)
	if err != nil {
		return err
	}
	if covered {
		for _, id := range unguarded {
			if err := q.guard(ctx, zone, id); err != nil {
				return err
			}
		}
	}
	key := keys.Zone(zone, "traits:", version)
	for chunk := range slices.Chunk(more, 2*codec.ChunkMax) {
		if err := q.c.Redis().HSet(ctx, key, chunk...).Err(); err != nil {
			return q.c.Say("limits", err)
		}
		// The key may be new.
		if err := q.c.Redis().Expire(ctx, key, inventoryKeep).Err(); err != nil {
			return q.c.Say("limits", err)
		}
	}
	return nil
}

// uncounted returns the hosts of an inventory that lack limits, with all their traits from now on.
// covered reports whether any host has a limit.
func (q *Inventory) uncounted(ctx context.Context, zone, version string, limits []fleet.Limit) (
	more []any, covered bool, err error) {
	for cursor := uint64(0); ; {
		pairs, next, err := q.c.Redis().HScan(ctx, keys.Zone(zone, "hosts:", version), cursor, "",
			codec.ChunkMax).Result()
		if err != nil {
			return nil, false, q.c.Say("limits", err)
		}
		var names []string
		var hosts []fleet.Host
		for i := 1; i < len(pairs); i += 2 {
			var h fleet.Host
			if err := json.Unmarshal([]byte(pairs[i]), &h); err != nil {
				return nil, false, fmt.Errorf("host %s of inventory %s: %w", pairs[i-1], version, err)
			}
			if len(fleet.Needs(h, limits)) > 0 {
				names, hosts = append(names, h.Name), append(hosts, h)
			}
		}
		if len(names) > 0 {
			covered = true
			is, err := q.c.Redis().HMGet(ctx, keys.Zone(zone, "traits:", version), names...).Result()
			if err != nil {
				return nil, false, q.c.Say("limits", err)
			}
			for i, h := range hosts {
				if text := withLimits(codec.TextOf(is, i), h, limits); text != codec.TextOf(is, i) {
					more = append(more, h.Name, text)
				}
			}
		}
		if cursor = next; cursor == 0 {
			return more, covered, nil
		}
	}
}

// withLimits adds the missing limits to the traits of a host.
func withLimits(is string, h fleet.Host, limits []fleet.Limit) string {
	words := strings.Fields(cmp.Or(is, traits(h, nil)))
	for _, name := range fleet.Needs(h, limits) {
		if !slices.Contains(words[2:], name) {
			words = append(words, name)
		}
	}
	return strings.Join(words, " ")
}

// guard makes a task need the resources in the traits of its hosts.
func (q *Inventory) guard(ctx context.Context, zone, id string) error {
	text, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "task:", id), "spec").Bytes()
	if err == redis.Nil {
		return nil // it has just ended
	}
	if err != nil {
		return q.c.Say("limits", err)
	}
	var s jobs.Spec
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("task %s: %w", id, err)
	}
	t := jobs.Task{ID: jobs.TaskID(id), Spec: s}
	_, err = q.c.Turn(ctx, zone, codec.Turn{Verb: "guard", Object: id, Number: codec.Guard(t)})
	return err
}
