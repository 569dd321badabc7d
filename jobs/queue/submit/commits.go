package submit

import (
	"context"
	"errors"
	"fmt"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// TendCommits completes the commits that were left half done.
func (q *Submits) TendCommits(ctx context.Context) error {
	ids, err := q.c.Redis().SMembers(ctx, keys.Hub("commits", "")).Result()
	if err != nil {
		return q.c.Say("tend", err)
	}
	var errs []error // a task that cannot be committed must not keep the others
	for _, id := range ids {
		zones, err := q.c.Places.TaskZones(ctx, jobs.TaskID(id))
		if err == nil {
			err = q.commitAll(ctx, jobs.TaskID(id), zones)
		}
		if errors.Is(err, queue.ErrNotFound) || errors.Is(err, queue.ErrCancelled) {
			err = q.c.Say("tend", q.c.Redis().SRem(ctx, keys.Hub("commits", ""), id).Err())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("task %s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}
