package wipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Rules lets a user of Redis do what this package does. No role has this right: neither a server
// nor a node needs it.
const Rules = "~" + keys.Prefix + "* -@all +cluster|slots +command +get +hget +ping +scan " +
	"+unlink +zcard"

// Data is all that an installation has in Redis.
type Data struct{ c *queue.Conn }

// New returns the data behind a connection.
func New(c *queue.Conn) Data { return Data{c} }

// page is the number of keys that one call of SCAN looks at.
const page = 1000

// pause is the time between two looks for life.
const pause = 500 * time.Millisecond

// Alive returns the nodes that beat and the servers that have a duty, in words. It looks until it
// has found one, for at least the given time: after a FLUSHALL nodes and servers are forgotten
// until they write again.
func (d Data) Alive(ctx context.Context, watch time.Duration) ([]string, error) {
	hub, _, err := d.c.At(ctx, keys.HubZone)
	if err != nil {
		return nil, err
	}
	end := time.NewTimer(watch)
	defer end.Stop()
	for last := false; ; {
		found, err := living(ctx, hub)
		if err != nil || len(found) > 0 || last {
			return found, d.c.Say("look for nodes and servers", err)
		}
		select {
		case <-time.After(pause):
		case <-end.C:
			last = true // one more look, at what came in the last pause
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// living looks once. Both kinds of keys expire by themselves when nobody writes them.
func living(ctx context.Context, hub *redis.Client) (found []string, err error) {
	node, duty := keys.Hub("node:", ""), keys.Hub("leader:", "")
	servers := map[string][]string{}
	err = scan(ctx, hub, keys.Hub("*", ""), func(list []string) error {
		for _, key := range list {
			if id, is := strings.CutPrefix(key, node); is {
				found = append(found, fmt.Sprintf("node %s beats", id))
			}
			if name, is := strings.CutPrefix(key, duty); is {
				term, err := hub.Get(ctx, key).Result()
				if err != nil && !errors.Is(err, redis.Nil) {
					return err
				}
				_, server, _ := strings.Cut(term, " ")
				servers[server] = append(servers[server], name)
			}
		}
		return nil
	})
	for server, duties := range servers {
		slices.Sort(duties)
		found = append(found, fmt.Sprintf("server %s has duties: %s", server,
			strings.Join(slices.Compact(duties), ", ")))
	}
	slices.Sort(found)
	return slices.Compact(found), err
}

// Owner returns the installation that the signed timetable in Redis names; empty: there is no such
// timetable. The signature is not checked: this is a guard against mistakes, not against attackers.
func (d Data) Owner(ctx context.Context) (string, error) {
	name, _, err := d.Said(ctx)
	return name, err
}

// Said is Owner that also returns when a server last said that the timetable is in force.
func (d Data) Said(ctx context.Context) (installation string, at time.Time, err error) {
	text, err := d.c.Redis().HGet(ctx, keys.Hub("windows", ""), "statement").Bytes()
	if errors.Is(err, redis.Nil) {
		return "", at, nil
	}
	if err != nil {
		return "", at, d.c.Say("read which installation it is of", err)
	}
	var of struct {
		Installation string    `json:"installation"`
		At           time.Time `json:"at"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return "", at, fmt.Errorf("the statement of the timetable in Redis is no JSON: %w", err)
	}
	return of.Installation, of.At, nil
}

// Count returns how many keys of each kind there are. The name of a kind has its place in front,
// such as "zone default: task:<id>". JobsWait has those entries that are jobs.
func (d Data) Count(ctx context.Context) (kinds map[string]int, err error) {
	kinds = map[string]int{}
	var mu sync.Mutex // nodes of a cluster are asked at the same time
	err = d.each(ctx, func(ctx context.Context, c *redis.Client, list []string) error {
		waits, err := count(ctx, c, list)
		mu.Lock()
		defer mu.Unlock()
		for _, key := range list {
			kinds[kindOf(key)]++
		}
		if waits > 0 {
			kinds[JobsWait] += waits
		}
		return err
	})
	return kinds, d.c.Say("count the keys", err)
}

// JobsWait names the number of jobs that wait, beside the kinds of keys.
const JobsWait = "jobs that have not ended, and do not run"

// count returns how many jobs wait in those of the keys that are queues.
func count(ctx context.Context, c *redis.Client, list []string) (n int, err error) {
	var sizes []*redis.IntCmd
	p := c.Pipeline()
	for _, key := range list {
		_, kind, _ := strings.Cut(key, "}:")
		if kind == "queue" || kind == "again" || strings.HasPrefix(kind, "held:") {
			sizes = append(sizes, p.ZCard(ctx, key))
		}
	}
	if len(sizes) > 0 {
		_, err = p.Exec(ctx)
	}
	for _, size := range sizes {
		n += int(size.Val())
	}
	return n, err
}

// kindOf returns the kind of a key, as docs/REDIS.md names it.
func kindOf(key string) string {
	zone, rest, _ := strings.Cut(strings.TrimPrefix(key, keys.Prefix+"{"), "}:")
	place, table := "zone "+zone, keys.ZoneKeys
	if zone == keys.HubZone {
		place, table = "the hub", keys.HubKeys
	}
	best, length := "of no kind that this muster knows", -1
	for _, k := range table {
		front, _, many := strings.Cut(k.Name, "<")
		fits := rest == k.Name
		if many {
			fits = strings.HasPrefix(rest, front)
		}
		if fits && len(front) > length {
			best, length = k.Name, len(front)
		}
	}
	return place + ": " + best
}

// Delete deletes all keys and returns how many it has deleted, also beside an error.
func (d Data) Delete(ctx context.Context) (n int, err error) {
	var mu sync.Mutex
	err = d.each(ctx, func(ctx context.Context, c *redis.Client, list []string) error {
		gone := make([]*redis.IntCmd, len(list))
		p := c.Pipeline()
		for i, key := range list { // one key a call: keys of a page are in many slots
			gone[i] = p.Unlink(ctx, key)
		}
		_, err := p.Exec(ctx)
		mu.Lock()
		defer mu.Unlock()
		for _, g := range gone {
			n += int(g.Val())
		}
		return err
	})
	return n, d.c.Say("delete the keys", err)
}

// each calls f with pages of all keys. The nodes of a cluster are asked at the same time, so f must
// be safe for that.
func (d Data) each(ctx context.Context,
	f func(ctx context.Context, c *redis.Client, list []string) error) error {
	one := func(ctx context.Context, c *redis.Client) error {
		return scan(ctx, c, keys.Prefix+"{*", func(list []string) error { return f(ctx, c, list) })
	}
	if cluster, is := d.c.Redis().(*redis.ClusterClient); is {
		return cluster.ForEachMaster(ctx, one)
	}
	c, _, err := d.c.At(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	return one(ctx, c)
}

// scan calls f with pages of the keys that fit a pattern. A key may come twice.
func scan(ctx context.Context, c *redis.Client, pattern string, f func([]string) error) error {
	for cursor := uint64(0); ; {
		list, next, err := c.Scan(ctx, cursor, pattern, page).Result()
		if err == nil && len(list) > 0 {
			err = f(list)
		}
		if cursor = next; err != nil || cursor == 0 {
			return err
		}
	}
}
