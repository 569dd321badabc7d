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

// halfway is an open task of a zone as far as it tells whether somebody who ended a pause
// or cancelled it broke off.
type halfway struct {
	id     string
	fields *redis.SliceCmd // total, done, running, paused, cancel
	held   *redis.IntCmd
	parked *redis.BoolCmd // a take laid some of it aside
}

// tendHalfway goes on with what was left half way: jobs of a task that is not paused any
// more, and lie aside still, where no take meets them; and those that wait, of one that
// was cancelled. It looks at every open task, so it is done now and then.
func (q *Care) tendHalfway(ctx context.Context, zone string) error {
	var errs []error // one that cannot be gone on with is not in the way of the others
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

// goOn goes on with one task, in the zone that says how far it is and in no other: whoever
// has the user of a node can write anything there. What a paused customer keeps aside stays.
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
