package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/redistest"
)

// A server that cannot do its work says so in words, nothing is handed out meanwhile, and the same
// call succeeds once the server can.
func TestAServerThatCannotIsUnderstood(t *testing.T) {
	t.Parallel()
	replicaOfNobody := func(t *testing.T, c *redis.Client) {
		must(t, c.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
	}
	for _, c := range []struct {
		name, want string
		spoil      func(t *testing.T, c *redis.Client)
		mend       func(t *testing.T, c *redis.Client)
	}{
		{"READONLY", "is a replica now", replicaOfNobody, func(t *testing.T, c *redis.Client) {
			must(t, c.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
		}},
		{"MASTERDOWN", "lost its master", func(t *testing.T, c *redis.Client) {
			must(t, c.ConfigSet(t.Context(), "replica-serve-stale-data", "no").Err())
			replicaOfNobody(t, c)
		}, func(t *testing.T, c *redis.Client) {
			must(t, c.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
		}},
		{"NOREPLICAS", "min-replicas-to-write", func(t *testing.T, c *redis.Client) {
			must(t, c.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
		}, func(t *testing.T, c *redis.Client) {
			must(t, c.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
		}},
		{"MISCONF", "look at its disk", func(t *testing.T, c *redis.Client) {
			must(t, c.ConfigSet(t.Context(), "save", "3600 1").Err())
			dir := c.ConfigGet(t.Context(), "dir").Val()["dir"]
			must(t, os.MkdirAll(dir+"/dump.rdb/x", 0o700))
			c.BgSave(t.Context())
			redistest.Await(t, "the save fails", func(ctx context.Context) bool {
				return strings.Contains(c.Info(ctx, "persistence").Val(), "rdb_last_bgsave_status:err")
			})
		}, func(t *testing.T, c *redis.Client) {
			must(t, c.ConfigSet(t.Context(), "stop-writes-on-bgsave-error", "no").Err())
			must(t, c.ConfigSet(t.Context(), "save", "").Err()) // or it does not end
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.StartServer(t)
			q, admin := open(t, world{cfg: s.Config()}, "1"), raw(t, s.Addr)
			looker := open(t, world{cfg: s.Config()}, "2")
			must(t, looker.Writes(t.Context()))
			submit(t, q, spec(), 3)
			g := one(t, step(t, q, "1", 1))
			if c.name == "MASTERDOWN" { // to a function it answers READONLY
				q.NoFunctions()
			}
			c.spoil(t, admin)
			call := jobs.Step{Node: "n1", Slot: "1", Request: "again", Want: 1,
				Results: []jobs.Result{ended(g, jobs.Succeeded)}}
			r, err := q.Step(t.Context(), zone, call)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.name) {
				t.Errorf("answer %+v, error %v: want it to say %q and %s", r, err, c.want, c.name)
			}
			said := strings.Replace(c.want, "lost its master", "is a replica now", 1) // a write finds that first
			if err := looker.Writes(t.Context()); err == nil || !strings.Contains(err.Error(), said) ||
				errors.Is(err, queue.ErrFull) {
				t.Errorf("who asks whether it writes hears %v", err)
			}
			c.mend(t, admin)
			must(t, looker.Writes(t.Context()))
			var next jobs.Reply
			redistest.Await(t, "the queue answers", func(ctx context.Context) bool {
				next, err = q.Step(ctx, zone, call)
				return err == nil
			})
			if g := one(t, next); len(next.Late) > 0 {
				t.Errorf("after it: %+v, late %v", g, next.Late)
			}
			redistest.CheckIn(t, s.Config(), zone)
		})
	}
}

// A server that is loading its data answers, but refuses calls.
func TestAServerThatLoadsIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t, "--key-load-delay", "1000")
	q := open(t, world{cfg: s.Config()}, "1")
	submit(t, q, quick(), 3)
	_, err := raw(t, s.Addr).Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 12000 { // loading takes 12 s, and it answers each second
			p.Set(t.Context(), fmt.Sprint("filler", i), i, 0)
		}
		return nil
	})
	must(t, err)
	s.Stop()
	up := make(chan error, 1)
	go func() { up <- s.Start() }()
	loading := false
	for {
		_, err := q.Step(t.Context(), zone, jobs.Step{Node: "n1", Slot: "1", Request: "x", Want: 1})
		if err == nil {
			break
		}
		loading = loading || strings.Contains(err.Error(), "loading its data")
		<-time.After(20 * time.Millisecond)
	}
	must(t, <-up)
	if !loading {
		t.Error("the server never said that it loads: the test shows nothing")
	}
}

// If an answer takes longer than a call may, the call is made again, and no job is taken twice.
func TestAStallIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	p := redistest.StartProxy(t, s.Addr)
	cfg := s.Config()
	cfg.URL, cfg.Timeout = "redis://"+p.Addr+"/0", 300*time.Millisecond
	q := open(t, world{cfg: cfg}, "1")
	id := submit(t, q, spec(), 5)
	step(t, q, "1", 0)
	p.Stall()
	call := jobs.Step{Node: "n1", Slot: "1", Request: "once", Want: 1}
	for range 2 {
		_, err := q.Step(t.Context(), zone, call)
		if timeout := net.Error(nil); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("a stalled call: %v", err)
		}
	}
	p.Resume()
	redistest.Await(t, "the queue answers", func(ctx context.Context) bool {
		r, err := q.Step(ctx, zone, call)
		return err == nil && len(r.Jobs) == 1
	})
	info, err := q.Task(t.Context(), id)
	if err != nil || info.Running != 1 {
		t.Errorf("%d jobs run, %v", info.Running, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
