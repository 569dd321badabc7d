package work

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
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Kin gives a worker the facts that it needs to mark the members of a redundancy group (G6).
type Kin struct{ c *queue.Conn }

// NewKin returns the groups behind a connection.
func NewKin(c *queue.Conn) *Kin { return &Kin{c} }

// This file reads the facts that a worker needs to mark the members of a redundancy group (G6): the
// members, and the fate of the job whose marker is there.

// Kin returns the groups of a zone in an inventory, each with the names of its hosts, sorted. It
// reads every host of the zone, so callers keep the answer.
func (q *Kin) Kin(ctx context.Context, zone, version string) (map[string][]string, error) {
	all, err := q.c.Redis().HGetAll(ctx, keys.Zone(zone, "traits:", version)).Result()
	if err != nil {
		return nil, q.c.Say("groups", err)
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
func (q *Kin) Hosts(ctx context.Context, zone, version string, names []string) ([]fleet.Host,
	error) {
	texts, err := q.c.Redis().HMGet(ctx, keys.Zone(zone, "hosts:", version), names...).Result()
	if err != nil {
		return nil, q.c.Say("hosts", err)
	}
	hosts := make([]fleet.Host, len(names))
	for i, name := range names {
		text, ok := texts[i].(string)
		if !ok {
			return nil, fmt.Errorf("host %s of inventory %s: %w", name, version, queue.ErrNotFound)
		}
		if err := json.Unmarshal([]byte(text), &hosts[i]); err != nil {
			return nil, fmt.Errorf("host %s of inventory %s: %w", name, version, err)
		}
	}
	return hosts, nil
}

// Fate returns the known fate of a job that wanted a group for itself.
func (q *Kin) Fate(ctx context.Context, zone, group string, id jobs.ID) (jobs.Standing, error) {
	var record, cleared *redis.StringCmd
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		record = p.HGet(ctx, keys.Zone(zone, "task:", string(id.Task())), codec.RecordField(id.Host()))
		cleared = p.HGet(ctx, keys.Zone(zone, "cleared", ""), group)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return jobs.Standing{}, q.c.Say("fate", err)
	}
	var f jobs.Standing
	if text := cleared.Val(); text != "" {
		if f.Cleared, err = jobs.ParseMicros(text); err != nil {
			return f, fmt.Errorf("group %s: when it was cleared: %w", group, err)
		}
	}
	r, err := codec.ReadRecord(record.Val())
	if err != nil {
		return f, err
	}
	f.State, f.Outcome = r.State, r.End.Outcome
	return f, nil
}
