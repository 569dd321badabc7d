package read

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Spec returns the spec of a task as it was frozen at the submit.
func (q *Tasks) Spec(ctx context.Context, id jobs.TaskID) (jobs.Spec, error) {
	var spec jobs.Spec
	zones, err := q.c.Places.TaskZones(ctx, id)
	if err != nil {
		return spec, err
	}
	for _, zone := range zones { // it is the same in each zone that still has it
		text, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "task:", string(id)), "spec").Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return spec, q.c.Say("task", err)
		}
		if spec, err = codec.ReadSpec(text); err != nil {
			return spec, fmt.Errorf("task %s: its spec cannot be read: %w", id, err)
		}
		return spec, nil
	}
	return spec, fmt.Errorf("task %s: what it was asked with: %w", id, queue.ErrNotFound)
}
