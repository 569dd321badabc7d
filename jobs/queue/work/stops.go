package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Committed returns the time at which a task was committed in a zone, by the clock of its Redis: no
// attempt at its jobs has an older token. It returns 0 for a task that is not known.
func (q *Work) Committed(ctx context.Context, zone string, task jobs.TaskID) (jobs.Micros, error) {
	text, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "task:", string(task)), "committed").Result()
	if errors.Is(err, redis.Nil) || err == nil && text == "" {
		return 0, nil
	}
	if err != nil {
		return 0, q.c.Say("committed", err)
	}
	return jobs.ParseMicros(text)
}

// Stops returns the jobs among these that must be stopped, each with who ordered it and why. It
// takes one round trip and is for workers with jobs in hand. It also reports their jobs again if
// the zone was forgotten meanwhile.
func (q *Work) Stops(ctx context.Context, zone string, ids []jobs.ID) (map[jobs.ID]string, error) {
	found := make([]*redis.SliceCmd, len(ids))
	var epoch *redis.StringCmd
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		epoch = p.HGet(ctx, keys.Zone(zone, "zone", ""), "epoch")
		for i, id := range ids {
			found[i] = p.HMGet(ctx, keys.Zone(zone, "task:", string(id.Task())), "cancel",
				codec.RecordField(id.Host()))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, q.c.Say("stops", err)
	}
	if err := q.c.Follow(ctx, zone, epoch.Val()); err != nil {
		return nil, err
	}
	out := map[jobs.ID]string{}
	for i, id := range ids {
		whole, _ := found[i].Val()[0].(string)
		text, _ := found[i].Val()[1].(string)
		r, err := codec.ReadRecord(text)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", id, err)
		}
		notes := slices.DeleteFunc([]string{whole, r.Cancel}, func(s string) bool { return s == "" })
		if len(notes) > 0 {
			out[id] = strings.Join(notes, "; ")
		}
	}
	return out, nil
}
