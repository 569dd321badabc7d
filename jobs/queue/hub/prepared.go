package hub

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Prepared is a change of the hub that is ready to be made, alone or together with others.
type Prepared struct {
	Keys []string // no other change of these comes between Check and Write

	// Check returns an error if what the change was made from is not there any more.
	Check func(ctx context.Context, r redis.Cmdable) error
	Write func(ctx context.Context, p redis.Pipeliner)
	Done  func() // is called when the change was made; nil: nothing is to be done
}

// Make makes all of these changes or none. Redis watches whole keys, so a change of another part of
// them breaks a transaction as well, and is no conflict: only the checks decide.
func Make(ctx context.Context, c *queue.Conn, list ...Prepared) error {
	var watched []string
	for _, one := range list {
		watched = append(watched, one.Keys...)
	}
	for {
		err := c.Redis().Watch(ctx, func(tx *redis.Tx) error {
			for _, one := range list {
				if err := one.Check(ctx, tx); err != nil {
					return err
				}
			}
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				for _, one := range list {
					one.Write(ctx, p)
				}
				return nil
			})
			return err
		}, watched...)
		if errors.Is(err, redis.TxFailedErr) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		for _, one := range list {
			if one.Done != nil {
				one.Done()
			}
		}
		return nil
	}
}

// PrepareSchedules returns the change that ChangeSchedules makes. Its check returns queue.ErrStale.
func (q *Schedules) PrepareSchedules(stamp string, list []ScheduleChange) (Prepared, error) {
	schedules, ticking, stamps := keys.Hub("schedules", ""), keys.Hub("ticks", ""),
		keys.Hub("stamps", "")
	all, err := q.written(list)
	if err != nil {
		return Prepared{}, err
	}
	// Every change of a schedule by an operator moves the stamp, so it tells about all of them.
	check := func(ctx context.Context, r redis.Cmdable) error {
		is, err := r.HGet(ctx, stamps, "schedules").Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if is != stamp {
			return queue.ErrStale
		}
		return nil
	}
	return Prepared{Keys: []string{stamps, schedules}, Check: check, Write: func(ctx context.Context,
		p redis.Pipeliner) {
		p.HIncrBy(ctx, stamps, "schedules", 1)
		for i, one := range all {
			name := list[i].name()
			if one.text == "" {
				p.HDel(ctx, schedules, name)
				p.HDel(ctx, ticking, name)
				continue
			}
			if one.ticks != "" {
				p.HSet(ctx, ticking, name, one.ticks)
			}
			p.HSet(ctx, schedules, name, one.text)
		}
	}}, nil
}
