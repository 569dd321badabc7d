package read

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/keys"
)

// deferredMax bounds the jobs with a later time that are read of a zone; the earliest come first.
const deferredMax = 1000

// Deferred returns the jobs of a zone that wait for a time of their own, the earliest first. more
// reports whether there may be others, all of them due later than these.
func (q *Tasks) Deferred(ctx context.Context, zone string) (list []jobs.JobInfo, more bool,
	err error) {
	now, err := q.c.Now(ctx, zone)
	if err != nil {
		return nil, false, err
	}
	// A job with a time of its own waits in the set again, between running jobs and their locks.
	ids, err := q.c.Redis().ZRangeArgs(ctx, redis.ZRangeArgs{Key: keys.Zone(zone, "again", ""),
		ByScore: true,
		Start:   "(" + strconv.FormatInt(int64(jobs.MicrosOf(now)), 10), Stop: "+inf",
		Count: deferredMax}).Result()
	if err != nil {
		return nil, false, q.c.Say("queue", err)
	}
	hosts := map[jobs.TaskID][]string{}
	var order []jobs.TaskID
	for _, id := range ids {
		task := jobs.ID(id).Task()
		if hosts[task] == nil {
			order = append(order, task)
		}
		hosts[task] = append(hosts[task], jobs.ID(id).Host())
	}
	for _, task := range order {
		some, err := q.JobsOn(ctx, zone, task, hosts[task])
		if err != nil {
			return nil, false, err
		}
		for _, j := range some {
			if (j.State == jobs.Deferred || j.State == jobs.Queued) && j.Next.After(now) {
				list = append(list, j)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b jobs.JobInfo) int {
		return cmp.Or(a.Next.Compare(b.Next.Time), cmp.Compare(a.ID, b.ID))
	})
	return list, len(ids) == deferredMax, nil
}
