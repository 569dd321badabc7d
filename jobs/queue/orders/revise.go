package orders

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// revise changes a hash of the hub: decide gets all fields and returns those to set and those to
// remove. If somebody else changes the hash in between, decide is called again. A call that reaches
// Redis late therefore replaces nothing newer.
func (q *Switches) revise(ctx context.Context, key string,
	decide func(now map[string]string) (set map[string]any, drop []string)) error {
	for {
		err := q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
			now, err := tx.HGetAll(ctx, key).Result()
			if err != nil {
				return err
			}
			set, drop := decide(now)
			if len(set) == 0 && len(drop) == 0 {
				return nil
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				if len(set) > 0 {
					p.HSet(ctx, key, set)
				}
				if len(drop) > 0 {
					p.HDel(ctx, key, drop...)
				}
				return nil
			})
			return err
		}, key)
		if !errors.Is(err, redis.TxFailedErr) {
			return err
		}
	}
}
