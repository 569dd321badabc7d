package submit

import (
	"context"
	"errors"
	"fmt"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// TendCommits goes on with the commits that somebody left half way.
func (q *Submits) TendCommits(ctx context.Context) error {
	ids, err := q.c.Redis().SMembers(ctx, keys.Hub("commits", "")).Result()
	if err != nil {
		return q.c.Say("tend", err)
	}
	var errs []error // one that cannot be committed is not in the way of the others
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
