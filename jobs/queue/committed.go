package queue

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// Committed is when a task was committed in a zone, by the clock of its Redis: no attempt at a
// job of it has an older token. It is 0 for a task that is not known.
func (q *Queue) Committed(ctx context.Context, zone string, task jobs.TaskID) (jobs.Micros, error) {
	text, err := q.rdb.HGet(ctx, zoneKey(zone, "task:", string(task)), "committed").Result()
	if errors.Is(err, redis.Nil) || err == nil && text == "" {
		return 0, nil
	}
	if err != nil {
		return 0, q.say("committed", err)
	}
	return jobs.ParseMicros(text)
}
