package queue

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// worstError makes a pipeline end with the error of a command that failed, if there is one. The
// client takes the first error in the order of the commands, and to it a field that is not
// there is an error, too: who lets that pass (redis.Nil) let the failures behind it pass, and
// took what could not be read for empty.
type worstError struct{}

// DialHook implements redis.Hook.
func (worstError) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (worstError) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (worstError) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		for _, cmd := range cmds {
			if failed := cmd.Err(); failed != nil && !errors.Is(failed, redis.Nil) {
				return failed
			}
		}
		return err
	}
}
