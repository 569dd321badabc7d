package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/testkit/redistest"
)

// A retry that was cancelled while it was submitted does nothing again, even in a zone whose jobs
// were put after the cancel: they are never committed.
func TestARetryThatWasCancelledInItsSubmitIsNone(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, ctx := open(t, w, "1"), t.Context()
		of := failing(t, q, 1)
		task, hosts := retryOf(of, "alice", "fw0000")
		hosts["zz"], task.Total = []string{"zz1"}, 2
		err := q.Submit(ctx, task, hosts, func(n int) {
			if n != 1 {
				return
			}
			if _, err := q.Cancel(ctx, task.ID, "no"); err != nil {
				t.Error(err)
			}
		})
		if !errors.Is(err, queue.ErrCancelled) {
			t.Fatalf("submit: %v", err)
		}
		if got := retries(t, q, of, "fw0000", "zz1"); got != "" {
			t.Errorf("retries: %q", got)
		}
	})
}

// widest counts the words of the longest command, or of commands that were sent together.
type widest struct {
	mu    sync.Mutex
	words int // guarded by mu
}

func (w *widest) see(cmds ...redis.Cmder) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cmd := range cmds {
		w.words = max(w.words, len(cmd.Args()))
	}
}

func (w *widest) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *widest) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		w.see(cmd)
		return next(ctx, cmd)
	}
}

func (w *widest) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		w.see(cmds...)
		return next(ctx, cmds)
	}
}

// A retry that was cancelled while it was submitted gives all its hosts up, and none of its calls
// names more than some of them.
func TestARetryOfManyHostsGivesThemBackInFewWords(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	w := world{cfg: s.Config()}
	q, ctx, seen := open(t, w, "1"), t.Context(), new(widest)
	of := failing(t, q, 1)
	names := make([]string, 2500)
	for i := range names {
		names[i] = fmt.Sprintf("fw%04d", i)
	}
	task, hosts := retryOf(of, "alice", names...)
	q.AddHook(seen)
	err := q.Submit(ctx, task, hosts, func(n int) {
		if n != len(names) {
			return
		}
		if got := retries(t, q, of, "fw0000", "fw2499"); got != "alice[fw0000 fw2499] open 2 coming; " {
			t.Errorf("while it is submitted: %q", got)
		}
		if _, err := q.Cancel(ctx, task.ID, "bob"); err != nil {
			t.Error(err)
		}
		// The submit is repeated, and is refused now.
		if err := q.Submit(ctx, task, hosts, nil); !errors.Is(err, queue.ErrCancelled) {
			t.Errorf("the same submit again: %v", err)
		}
	})
	if err == nil {
		t.Error("it was submitted")
	}
	if got := retries(t, q, of, "fw0000", "fw2499"); got != "" {
		t.Errorf("they are not given back: %q", got)
	}
	again, hosts := retryOf(of, "carol", names...)
	if err := q.Submit(ctx, again, hosts, nil); err != nil {
		t.Errorf("another retry of them: %v", err)
	}
	if seen.words > 1200 { // a chunk of 500 hosts, each with its claim
		t.Errorf("a call had %d words", seen.words)
	}
}
