package care

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// TrimEvents forgets the entries of a zone's stream before one, or a few less.
func (q *History) TrimEvents(ctx context.Context, zone, before string) error {
	return q.c.Say("events", q.c.Redis().XTrimMinIDApprox(ctx, keys.Zone(zone, "events", ""), before,
		0).Err())
}

// HistoryAway returns since when events are not stored, and why. Its Since is not set while they
// are.
func (q *History) HistoryAway(ctx context.Context) (a jobs.HistoryAway, err error) {
	text, err := q.c.Redis().HGet(ctx, keys.Hub("history", ""), "away").Result()
	if errors.Is(err, redis.Nil) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &a)
	}
	return a, q.c.Say("history", err)
}

// BeginHistoryAway stores the beginning of such a time, with an event.
func (q *History) BeginHistoryAway(ctx context.Context, a jobs.HistoryAway) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	set := func(p redis.Pipeliner) { p.HSet(ctx, keys.Hub("history", ""), "away", text) }
	return q.turnHistory(ctx, set,
		jobs.Alert{Event: EventHistoryAway, Object: "history", Detail: map[string]any{"note": a.Note,
			"since": a.Since}})
}

// EndHistoryAway stores its end, with an event.
func (q *History) EndHistoryAway(ctx context.Context, a jobs.HistoryAway, now time.Time) error {
	return q.turnHistory(ctx, func(p redis.Pipeliner) { p.Del(ctx, keys.Hub("history", "")) },
		jobs.Alert{Event: EventHistoryBack, Object: "history", Detail: map[string]any{"since": a.Since,
			"seconds": int64(now.Sub(a.Since.Time).Seconds()), "was": a.Note}})
}

// turnHistory does both in one transaction: a server that dies has done nothing, or all.
func (q *History) turnHistory(ctx context.Context, change func(redis.Pipeliner),
	e jobs.Alert) error {
	line, err := codec.EventLine(e)
	if err != nil {
		return err
	}
	_, err = q.c.Redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		change(p)
		p.XAdd(ctx, &redis.XAddArgs{Stream: keys.Hub("events", ""), MaxLen: codec.HubEventsMax,
			Approx: true,
			Values: []any{"e", line}})
		return nil
	})
	return q.c.Say("history", err)
}

// Backlogs reads the sizes of the streams of all zones, and of the hub.
func (q *History) Backlogs(ctx context.Context) ([]Backlog, error) {
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return nil, err
	}
	zones = append(zones, keys.HubZone)
	asked := make([]*redis.XInfoStreamCmd, len(zones))
	// A missing stream is an error of its own call.
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, zone := range zones {
			asked[i] = p.XInfoStream(ctx, keys.Zone(zone, "events", ""))
		}
		return nil
	})
	var out []Backlog
	for i, zone := range zones {
		switch e := asked[i].Err(); {
		case e != nil && (strings.Contains(e.Error(), "no such key") || queue.Away(e)):
			continue
		case e != nil:
			return nil, q.c.Say("events", errors.Join(err, e))
		}
		b := Backlog{zone, asked[i].Val().EntriesAdded, asked[i].Val().Length, codec.ZoneEventsMax}
		if zone == keys.HubZone {
			b.Most = codec.HubEventsMax
		}
		if b.Added < b.Length {
			b.Added = -1
		}
		out = append(out, b)
	}
	return out, nil
}
