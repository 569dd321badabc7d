package care

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// halfway holds the fields of an open task that show whether a resume or a cancel of it broke off.
type halfway struct {
	id     string
	fields *redis.SliceCmd // total, done, running, paused, cancel
	held   *redis.IntCmd
	parked *redis.BoolCmd // a take put some of its jobs aside
}

// tendHalfway completes what was left half done: it returns jobs to the queue that are still aside,
// out of reach of any take, though their task is not paused any more; and it ends the waiting jobs
// of cancelled tasks. It reads every open task, so it runs only now and then.
func (q *Care) tendHalfway(ctx context.Context, zone string) error {
	var errs []error // a task that fails must not keep the others
	for from := int64(0); ; from += codec.ChunkMax {
		ids, err := q.c.Redis().ZRange(ctx, keys.Zone(zone, "open", ""), from,
			from+codec.ChunkMax-1).Result()
		if err != nil || len(ids) == 0 {
			return errors.Join(append(errs, q.c.Say("tend", err))...)
		}
		var customers *redis.SliceCmd
		tasks := make([]halfway, len(ids))
		_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
			customers = p.HMGet(ctx, keys.Zone(zone, "zone", ""), "customers")
			for i, id := range ids {
				tasks[i] = halfway{id,
					p.HMGet(ctx, keys.Zone(zone, "task:", id), "total", "done", "running", "paused", "cancel"),
					p.ZCard(ctx, keys.Zone(zone, "held:", id)),
					p.SIsMember(ctx, keys.Zone(zone, "parked", ""), id)}
			}
			return nil
		})
		if err != nil {
			return errors.Join(append(errs, q.c.Say("tend", err))...)
		}
		for _, t := range tasks {
			if err := q.goOn(ctx, zone, t, codec.TextOf(customers.Val(), 0) != ""); err != nil {
				errs = append(errs, fmt.Errorf("task %s: %w", t.id, err))
			}
		}
	}
}

// goOn completes the operations of one task, only in the zone that needs it: a stolen user of a
// node can write anything there. Jobs that a paused customer keeps aside stay.
func (q *Care) goOn(ctx context.Context, zone string, t halfway, customers bool) error {
	v, id := t.fields.Val(), jobs.TaskID(t.id)
	number := func(i int) int {
		n, _ := strconv.Atoi(codec.TextOf(v, i))
		return n
	}
	paused, cancelled := codec.TextOf(v, 3), codec.TextOf(v, 4)
	waits := number(0) - number(1) - number(2)
	var err error
	switch {
	case cancelled != "" && waits > 0:
		err = q.needs.Cancels.EndCancelled(ctx, zone, id, cancelled)
	case cancelled == "" && paused == "" && t.held.Val() > 0 && !(customers && t.parked.Val()):
		err = q.needs.Switches.Release(ctx, zone, id)
	}
	if errors.Is(err, queue.ErrNotFound) {
		return nil
	}
	return err
}
