package hooks

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Commands lets another server say which commands there are: the client of a cluster asks any of
// its servers before its first call, and one of a zone may be away.
type Commands struct {
	Of func(context.Context) (*redis.Client, error)
}

// DialHook implements redis.Hook.
func (Commands) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (Commands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// ProcessHook implements redis.Hook.
func (h Commands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "command" {
			return next(ctx, cmd)
		}
		c, err := h.Of(ctx)
		if err != nil {
			cmd.SetErr(err)
			return err
		}
		return c.Process(ctx, cmd)
	}
}
