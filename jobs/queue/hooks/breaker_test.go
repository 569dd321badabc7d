package hooks_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/hooks"
	"muster/testkit/redistest"
)

// A server that does not answer is asked once in a while, and counts as there when it answers. That
// it is greeted on a new connection does not keep it away.
func TestABreakerTriesAgain(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	greeted := 0
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, DialerRetries: 1, Protocol: 2,
		OnConnect: func(ctx context.Context, cn *redis.Conn) error {
			greeted++
			return cn.Info(ctx, "server").Err()
		}})
	defer c.Close()
	c.AddHook(&hooks.Breaker{Server: "redis://it", Again: 300 * time.Millisecond})
	ctx := t.Context()
	if err := c.Set(ctx, "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := c.HGet(ctx, "k", "f").Err(); err == nil || errors.As(err, new(*hooks.AwayError)) {
		t.Errorf("what Redis refuses: %v", err)
	}
	s.Kill()
	for range 3 {
		away := new(hooks.AwayError)
		if err := c.Get(ctx, "k").Err(); !errors.As(err, &away) || away.Server != "redis://it" {
			t.Fatalf("without a server: %v", err)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Get(gone, "k").Err(); err == nil {
		t.Error("a call after its end is answered")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	before := greeted
	redistest.Await(t, "the server is there again", func(ctx context.Context) bool {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error { p.Ping(ctx); return nil })
		return err == nil
	})
	if greeted == before {
		t.Error("it was not greeted anew")
	}
}
