package queue

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// The events that tell of the beginning and the end of a time in which what happens is
// not stored.
const (
	EventHistoryAway = "history-away"
	EventHistoryBack = "history-back"
)

// HistoryAway is since when what happens is not stored, and why; its Since is not set if
// it is.
func (q *Queue) HistoryAway(ctx context.Context) (a jobs.HistoryAway, err error) {
	text, err := q.rdb.HGet(ctx, hubKey("history", ""), "away").Result()
	if errors.Is(err, redis.Nil) {
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &a)
	}
	return a, q.say("history", err)
}

// BeginHistoryAway keeps that, with an event.
func (q *Queue) BeginHistoryAway(ctx context.Context, a jobs.HistoryAway) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	set := func(p redis.Pipeliner) { p.HSet(ctx, hubKey("history", ""), "away", text) }
	return q.turnHistory(ctx, set,
		jobs.Alert{Event: EventHistoryAway, Object: "history", Detail: map[string]any{"note": a.Note,
			"since": a.Since}})
}

// EndHistoryAway is when it is over, with an event.
func (q *Queue) EndHistoryAway(ctx context.Context, a jobs.HistoryAway, now time.Time) error {
	return q.turnHistory(ctx, func(p redis.Pipeliner) { p.Del(ctx, hubKey("history", "")) },
		jobs.Alert{Event: EventHistoryBack, Object: "history", Detail: map[string]any{"since": a.Since,
			"seconds": int64(now.Sub(a.Since.Time).Seconds()), "was": a.Note}})
}

// turnHistory does both in one transaction: so a server that dies has done nothing, or all.
func (q *Queue) turnHistory(ctx context.Context, change func(redis.Pipeliner), e jobs.Alert) error {
	line, err := eventLine(e)
	if err != nil {
		return err
	}
	_, err = q.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		change(p)
		p.XAdd(ctx, &redis.XAddArgs{Stream: hubKey("events", ""), MaxLen: hubEventsMax, Approx: true,
			Values: []any{"e", line}})
		return nil
	})
	return q.say("history", err)
}

// A Backlog is what the event stream of a zone has.
type Backlog struct {
	Zone   string
	Added  int64 // entries that it ever got; -1: this Redis does not count them
	Length int64
	Most   int64 // about so many entries it holds: what comes then drives out the first
}

// Backlogs looks at the streams of all zones, and of the hub.
func (q *Queue) Backlogs(ctx context.Context) ([]Backlog, error) {
	zones, err := q.Zones(ctx)
	if err != nil {
		return nil, err
	}
	zones = append(zones, HubZone)
	asked := make([]*redis.XInfoStreamCmd, len(zones))
	// A stream that is not there is an error of its own call.
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, zone := range zones {
			asked[i] = p.XInfoStream(ctx, zoneKey(zone, "events", ""))
		}
		return nil
	})
	var out []Backlog
	for i, zone := range zones {
		switch e := asked[i].Err(); {
		case e != nil && strings.Contains(e.Error(), "no such key"):
			continue
		case e != nil:
			return nil, q.say("events", errors.Join(err, e))
		}
		b := Backlog{zone, asked[i].Val().EntriesAdded, asked[i].Val().Length, zoneEventsMax}
		if zone == HubZone {
			b.Most = hubEventsMax
		}
		if b.Added < b.Length {
			b.Added = -1
		}
		out = append(out, b)
	}
	return out, nil
}
