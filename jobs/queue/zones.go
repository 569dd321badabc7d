package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Places finds the zones of tasks and jobs.
type Places struct{ q *Conn }

// ZonesOf returns the hosts of some jobs of one task by zone.
func (p Places) ZonesOf(ctx context.Context, ids []jobs.ID) (map[string][]string, error) {
	task := ids[0].Task()
	zones, err := p.TaskZones(ctx, task)
	if err != nil {
		return nil, err
	}
	left := map[string]bool{}
	for _, id := range ids {
		if id.Task() != task {
			return nil, fmt.Errorf("job %s is of another task than %s", id, ids[0])
		}
		left[id.Host()] = true
	}
	out := map[string][]string{}
	for _, zone := range zones {
		err := p.EachChunk(ctx, zone, task, 0, func(hosts []string) error {
			for _, host := range hosts {
				if left[host] {
					out[zone] = append(out[zone], host)
					delete(left, host)
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(left) > 0 {
		return nil, &NoJobError{task, slices.Sorted(maps.Keys(left))}
	}
	return out, nil
}

// KnowZone returns an error that wraps ErrNotFound if a zone was never used.
func (p Places) KnowZone(ctx context.Context, zone string) error {
	zones, err := p.q.Zones(ctx)
	if err == nil && !slices.Contains(zones, zone) {
		err = fmt.Errorf("zone %s: %w", zone, ErrNotFound)
	}
	return err
}

// Publishers returns the clients to which to subscribe for what is published in zones. The servers
// of a cluster pass on to each other what is published, and others do not.
func (p Places) Publishers(ctx context.Context, zones []string) (
	map[redis.UniversalClient][]string, error) {
	if len(p.q.cfg.Apart) == 0 {
		return map[redis.UniversalClient][]string{p.q.rdb: zones}, nil
	}
	out := map[redis.UniversalClient][]string{}
	for _, zone := range zones {
		c, _, err := p.q.At(ctx, zone)
		if err != nil {
			return nil, err
		}
		out[c] = append(out[c], zone)
	}
	return out, nil
}

// Now returns the time of the server that has a zone: in a cluster each server has its own.
func (q *Conn) Now(ctx context.Context, zone string) (time.Time, error) {
	c, _, err := q.At(ctx, zone)
	if err != nil {
		return time.Time{}, err
	}
	now, err := c.Time(ctx).Result()
	return now, q.Say("time", err)
}

// Zones returns the zones that were ever used. A Redis that was emptied has no list of them until
// an inventory is published again; those that this connection has used count all the same.
func (q *Conn) Zones(ctx context.Context) ([]string, error) {
	zones, err := q.rdb.SMembers(ctx, keys.Hub("zones", "")).Result()
	if err != nil {
		return nil, q.Say("zones", err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for name, z := range q.zones {
		if z.epoch != "" {
			zones = append(zones, name)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones), nil
}

// TaskZones returns the zones of a task.
func (p Places) TaskZones(ctx context.Context, id jobs.TaskID) ([]string, error) {
	zones, err := p.q.rdb.HGet(ctx, keys.Hub("task:", string(id)), "zones").Result()
	if errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("task %s: %w", id, ErrNotFound)
	}
	return strings.Split(zones, ","), p.q.Say("task", err)
}

// EachChunk passes the hosts of a task in one zone to f, beginning at a position. All chunks but
// the last are full.
func (p Places) EachChunk(ctx context.Context, zone string, id jobs.TaskID, from int,
	f func([]string) error) error {
	for chunk := from / codec.HostsMax; ; chunk++ {
		text, err := p.q.rdb.HGet(ctx, keys.Zone(zone, "task:", string(id)),
			"hosts:"+strconv.Itoa(chunk)).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err != nil {
			return p.q.Say("jobs", err)
		}
		hosts := strings.Split(text, "\n")
		skip := min(max(from-chunk*codec.HostsMax, 0), len(hosts))
		if err := f(hosts[skip:]); err != nil {
			return err
		}
	}
}

// ZoneOf returns the zone of a job; the host list of its task decides whether the job exists.
func (p Places) ZoneOf(ctx context.Context, id jobs.ID) (string, error) {
	zones, err := p.ZonesOf(ctx, []jobs.ID{id})
	for zone := range zones {
		return zone, err
	}
	return "", err
}

// Alert writes an event that a person should look at into the events of a zone.
func (q *Conn) Alert(ctx context.Context, zone string, a jobs.Alert) error {
	line, err := codec.EventLine(a)
	if err != nil {
		return err
	}
	return q.Say("alert", q.rdb.XAdd(ctx, &redis.XAddArgs{Stream: keys.Zone(zone, "events", ""),
		MaxLen: codec.ZoneEventsMax, Approx: true, Values: []any{"e", line}}).Err())
}
