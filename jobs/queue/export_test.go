package queue

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// BeforeScript lets a test come in before each call of a script whose first
// argument is op; an error of f is that of the call, which is then not made.
func (q *Queue) BeforeScript(op string, f func(n int) error) {
	q.rdb.AddHook(&beforeScript{op: op, f: f})
}

type beforeScript struct {
	op string
	f  func(n int) error
	n  int
}

func (h *beforeScript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *beforeScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *beforeScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		// evalsha, hash, number of keys, key, first argument
		if args := cmd.Args(); len(args) > 4 && args[4] == h.op && strings.EqualFold(cmd.Name(), "evalsha") {
			h.n++
			if err := h.f(h.n); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmd)
	}
}
