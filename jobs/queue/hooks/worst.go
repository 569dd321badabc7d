package hooks

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// WorstError makes a pipeline return the error of a command that failed, if there is one. The
// client returns the first error in the order of the commands, and counts a missing field
// (redis.Nil) as an error too: a caller that ignored redis.Nil would also ignore the failures
// behind it, and take data that could not be read for empty.
type WorstError struct{}

// DialHook implements redis.Hook.
func (WorstError) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (WorstError) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (WorstError) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
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
