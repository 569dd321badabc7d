package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/fleet"
	"muster/jobs"
)

// This file is what a worker must know to mark the members of a redundancy group (G6): who
// they are, and what became of the job whose marker is there.

// Kin are the groups of a zone in an inventory, each with the names of its hosts, sorted. It
// reads of every host of the zone: it is to be kept.
func (q *Queue) Kin(ctx context.Context, zone, version string) (map[string][]string, error) {
	all, err := q.rdb.HGetAll(ctx, zoneKey(zone, "traits:", version)).Result()
	if err != nil {
		return nil, q.say("groups", err)
	}
	kin := map[string][]string{}
	for host, traits := range all {
		if words := strings.Fields(traits); len(words) > 1 && words[1] != "-" {
			kin[words[1]] = append(kin[words[1]], host)
		}
	}
	for _, hosts := range kin {
		slices.Sort(hosts)
	}
	return kin, nil
}

// Hosts reads hosts of a zone in an inventory, in the order of their names.
func (q *Queue) Hosts(ctx context.Context, zone, version string, names []string) ([]fleet.Host,
	error) {
	texts, err := q.rdb.HMGet(ctx, zoneKey(zone, "hosts:", version), names...).Result()
	if err != nil {
		return nil, q.say("hosts", err)
	}
	hosts := make([]fleet.Host, len(names))
	for i, name := range names {
		text, ok := texts[i].(string)
		if !ok {
			return nil, fmt.Errorf("host %s of inventory %s: %w", name, version, ErrNotFound)
		}
		if err := json.Unmarshal([]byte(text), &hosts[i]); err != nil {
			return nil, fmt.Errorf("host %s of inventory %s: %w", name, version, err)
		}
	}
	return hosts, nil
}

// Fate tells what is known of a job that wanted a group for itself.
func (q *Queue) Fate(ctx context.Context, zone, group string, id jobs.ID) (jobs.Standing, error) {
	var record, cleared *redis.StringCmd
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		record = p.HGet(ctx, zoneKey(zone, "task:", string(id.Task())), recordField(id.Host()))
		cleared = p.HGet(ctx, zoneKey(zone, "cleared", ""), group)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return jobs.Standing{}, q.say("fate", err)
	}
	var f jobs.Standing
	if text := cleared.Val(); text != "" {
		if f.Cleared, err = jobs.ParseMicros(text); err != nil {
			return f, fmt.Errorf("group %s: when it was cleared: %w", group, err)
		}
	}
	r, err := readRecord(record.Val())
	if err != nil {
		return f, err
	}
	f.State, f.Outcome = r.state, r.end.outcome
	return f, nil
}

// ClearMarkers tells that what hosts of a group carry of earlier jobs counts no more, as far
// as the queue does not know better. Each clear of a group does so.
func (q *Queue) ClearMarkers(ctx context.Context, zone, group, note string) error {
	if err := q.stampClear(ctx, zone, group); err != nil {
		return err
	}
	return q.Alert(ctx, zone, jobs.Alert{Event: "clear", Object: group,
		Detail: map[string]any{"note": note}})
}

func (q *Queue) stampClear(ctx context.Context, zone, group string) error {
	now, err := q.now(ctx, zone)
	if err != nil {
		return err
	}
	return q.say("clear", q.rdb.HSet(ctx, zoneKey(zone, "cleared", ""), group,
		jobs.MicrosOf(now).String()).Err())
}
