package hooks

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Quiet keeps go-redis from writing lines to standard error: the caller gets every such error
// anyway. Call it in main, before anything else.
func Quiet() { redis.SetLogger(silence{}) }

type silence struct{}

// Printf prints nothing.
func (silence) Printf(context.Context, string, ...any) {}
