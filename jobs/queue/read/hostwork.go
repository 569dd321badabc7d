package read

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// HostWork returns the work of a host: the holder of its lock, and its jobs in the newest tasks, at
// most so many tasks.
func (q *Tasks) HostWork(ctx context.Context, zone, host string, tasks int) (jobs.HostWork, error) {
	w := jobs.HostWork{Jobs: []jobs.JobInfo{}}
	var lock *redis.StringCmd
	var ids *redis.StringSliceCmd
	now, err := q.c.Now(ctx, zone)
	if err != nil {
		return w, err
	}
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		lock = p.HGet(ctx, keys.Zone(zone, "locks", ""), host)
		ids = p.ZRevRange(ctx, keys.Hub("tasks", ""), 0, int64(tasks)-1)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return w, q.c.Say("host", err)
	}
	// The lock holds its end, token and job; a lock that has ended may still be stored.
	if words := strings.Fields(lock.Val()); len(words) == 3 {
		until, _ := jobs.ParseMicros(words[0])
		if until > jobs.MicrosOf(now) {
			w.Lock = jobs.ID(words[2])
			w.Until = jobs.Time{Time: until.Time().Truncate(time.Millisecond)}
		}
	}
	w.Jobs, err = q.onHost(ctx, zone, host, ids.Val())
	return w, err
}

// onHost returns the jobs of these tasks on a host, for the tasks that have one there.
func (q *Tasks) onHost(ctx context.Context, zone, host string, tasks []string) ([]jobs.JobInfo,
	error) {
	heads := make([]*redis.SliceCmd, len(tasks))
	scores := make([][3]*redis.FloatCmd, len(tasks))
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, task := range tasks {
			id := string(jobs.NewID(jobs.TaskID(task), host))
			heads[i] = p.HMGet(ctx, keys.Zone(zone, "task:", task), "due", "committed",
				codec.RecordField(host))
			for k, key := range []string{keys.Zone(zone, "queue", ""), keys.Zone(zone, "again", ""),
				keys.Zone(zone, "held:", task)} {
				scores[i][k] = p.ZScore(ctx, key, id)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, q.c.Say("host", err)
	}
	list := []jobs.JobInfo{}
	for i, task := range tasks {
		s := scores[i]
		at := place{s[0].Val(), s[1].Val(), s[2].Val(), heads[i].Val(), 0}
		text, _ := heads[i].Val()[2].(string)
		if text == "" && at.queue+at.again+at.held == 0 {
			continue
		}
		r, err := codec.ReadRecord(text)
		if err != nil {
			return nil, fmt.Errorf("task %s on %s: %w", task, host, err)
		}
		list = append(list, info(&r, jobs.NewID(jobs.TaskID(task), host), at))
	}
	return list, nil
}
