package queue_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// shift moves a Redis' clock, as its clients see it: TIME itself, and TIME in the scripts, which
// are sent with other words in front.
type shift struct {
	by      atomic.Int64 // µs
	minute  string       // a minute in the scripts, in µs
	refused atomic.Int64 // calls that the scripts did not carry out
	scripts map[string]string
}

// shiftedCall stands in front of a script and replaces its redis.
const shiftedCall = `local redis = setmetatable({call = function(name, ...)
  local v = call0(name, ...)
  if name == 'TIME' then
    local at = tonumber(v[1]) * 1000000 + tonumber(v[2]) + (%d)
    return {string.format('%%d', math.floor(at / 1000000)), string.format('%%d', at %% 1000000)}
  end
  return v
end}, {__index = redis})
`

func newShift() *shift {
	return &shift{minute: "60000000", scripts: queue.ScriptTexts()}
}

func (s *shift) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *shift) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *shift) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args, by := cmd.Args(), s.by.Load()
		if args[0] == "evalsha" {
			text := strings.Replace(s.scripts[args[1].(string)], "m.MINUTE = 60000000", "m.MINUTE = "+s.minute, 1)
			args[0], args[1] = "eval", "local call0 = redis.call\n"+fmt.Sprintf(shiftedCall, by)+text
		}
		err := next(ctx, cmd)
		if v, ok := cmd.(*redis.Cmd); ok && err == nil {
			if list, err := v.Slice(); err == nil && len(list) > 0 && (list[0] == "skewed" || list[0] == "stale") {
				s.refused.Add(1)
			}
		}
		if v, ok := cmd.(*redis.TimeCmd); ok && err == nil {
			v.SetVal(v.Val().Add(time.Duration(by) * time.Microsecond))
		}
		return err
	}
}

// jumper returns a handle whose Redis can jump.
func jumper(t *testing.T, cfg queue.Config, s *shift, minute time.Duration) *queuetest.Queue {
	t.Helper()
	cfg.Pool, cfg.Timeout = 2, 10*time.Second
	q, err := queuetest.OpenLazy(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	q.SetJumpMin(minute)
	q.NoFunctions() // no text can be put in front of one
	q.AddHook(s)
	return q
}

func bounded(timeout time.Duration) jobs.Spec {
	s := spec()
	s.Timeout = timeout
	return s
}

// A jump of Redis' clock ends all locks at once. The call that sees it must not take anything,
// whether the clock jumps ahead or back.
func TestAJumpOfTheClockFreezesTheZone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		jump    time.Duration
		timeout time.Duration // of the task
		froze   time.Duration // how long; 0: not at all
	}{
		{"ahead", time.Hour, 10 * time.Minute, 10 * time.Minute},
		{"ahead, less than a lock", 2 * time.Minute, 10 * time.Minute, 2 * time.Minute},
		{"back", -2 * time.Hour, 10 * time.Minute, 10 * time.Minute},
		{"a little ahead", 50 * time.Second, 10 * time.Minute, 0},
		{"a little back", -50 * time.Second, 10 * time.Minute, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server, s := redistest.StartServer(t), newShift()
			q, other := jumper(t, server.Config(), s, time.Minute), jumper(t, server.Config(), s, time.Minute)
			submit(t, q, bounded(c.timeout), 20)
			for i, one := range []*queuetest.Queue{q, other} {
				// Each has its own slot: in one slot, the caller with the worse guess of TIME could be too
				// late.
				if r := step(t, one, fmt.Sprint(i+1), 1); len(r.Jobs) != 1 {
					t.Fatalf("before the jump: %+v", r)
				}
			}
			s.by.Store(c.jump.Microseconds())
			r := step(t, q, "1", 1)
			if c.froze == 0 {
				if len(r.Jobs) != 1 {
					t.Errorf("after a small jump: %+v", r)
				}
				return
			}
			froze := r.Next.Sub(r.Now)
			if r.Status != jobs.StatusFrozen || (froze-c.froze).Abs() > 5*time.Second {
				t.Fatalf("status %s for %s, want frozen for %s", r.Status, froze, c.froze)
			}
			if (r.Now.Sub(jobs.MicrosOf(time.Now())) - c.jump).Abs() > 5*time.Second {
				t.Errorf("the clock that jumped is not believed: %s", r.Now.Time())
			}
			// A caller that notices later does not make it longer.
			if again := step(t, other, "2", 1); again.Status != jobs.StatusFrozen || again.Next != r.Next {
				t.Errorf("who came later froze the zone to %d, not %d (%s)", again.Next, r.Next, again.Status)
			}
			if s.refused.Load() == 0 {
				t.Error("nobody was asked to look at the clock")
			}
			if c.jump < 0 {
				return // the jobs are due in the future now
			}
			// After the end of the freeze work continues.
			s.by.Add(c.froze.Microseconds())
			if err := q.ForgetClock(t.Context(), zone); err != nil { // otherwise that is a jump too
				t.Fatal(err)
			}
			if r := step(t, q, "1", 1); len(r.Jobs) != 1 {
				t.Errorf("after the freeze: %+v", r)
			}
		})
	}
}

// A clock that was far ahead for a while leaves stamps in the future.
func TestAClockThatWasAheadLocksNoSlotOut(t *testing.T) {
	t.Parallel()
	server, s := redistest.StartServer(t), newShift()
	ahead := time.Hour
	s.by.Store(ahead.Microseconds())
	q := jumper(t, server.Config(), s, time.Minute)
	submit(t, q, bounded(10*time.Second), 20)
	step(t, q, "1", 1)
	s.by.Store(0)
	fresh := jumper(t, server.Config(), s, time.Minute)
	step(t, fresh, "1", 1)
	if _, err := fresh.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1", Why: "x"}); err != nil {
		t.Error(err)
	}
}

// A jump behind a lost connection is noticed too.
func TestAJumpBehindANewConnectionFreezesTheZone(t *testing.T) {
	t.Parallel()
	server, s := redistest.StartServer(t), newShift()
	q := jumper(t, server.Config(), s, time.Minute)
	submit(t, q, bounded(10*time.Minute), 20)
	step(t, q, "1", 1)
	s.by.Store(time.Hour.Microseconds())
	raw(t, server.Addr).ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes")
	for q.Ping(t.Context()) != nil {
	}
	if r := step(t, q, "1", 1); r.Status != jobs.StatusFrozen {
		t.Errorf("status %s", r.Status)
	}
}

// A sleep is not taken for a jump of the clock: neither of a server that was stopped between the
// sending of a call and its execution, nor of a server whose answer came late, nor of a caller.
func TestASleepIsNoJump(t *testing.T) {
	t.Parallel()
	const minute, sleep = 500 * time.Millisecond, 1500 * time.Millisecond
	begin := func(t *testing.T) (*redistest.Server, *queuetest.Queue, *shift) {
		t.Parallel()
		server, s := redistest.StartServer(t), newShift()
		s.minute = fmt.Sprint(minute.Microseconds())
		q := jumper(t, server.Config(), s, minute)
		submit(t, q, bounded(10*time.Second), 20)
		step(t, q, "1", 1)
		return server, q, s
	}
	judge := func(t *testing.T, q *queuetest.Queue, s *shift) {
		t.Helper()
		if r := step(t, q, "1", 1); len(r.Jobs) != 1 {
			t.Errorf("after the sleep: %+v", r)
		}
		if s.refused.Load() == 0 {
			t.Error("the sleep was not even noticed: the test is too short")
		}
	}
	t.Run("server", func(t *testing.T) {
		server, q, s := begin(t)
		server.Process().Signal(syscall.SIGSTOP)
		timer := time.AfterFunc(sleep, func() { server.Process().Signal(syscall.SIGCONT) })
		defer timer.Stop()
		judge(t, q, s)
	})
	t.Run("answer", func(t *testing.T) {
		_, q, s := begin(t)
		q.Blur(zone, sleep)
		judge(t, q, s)
	})
	t.Run("caller", func(t *testing.T) {
		_, q, s := begin(t)
		// The stamp is made, the process stopped, and the call sent when it goes on.
		slept := false
		q.AddHook(before{func(cmd redis.Cmder) {
			if strings.HasPrefix(cmd.Name(), "eval") && !slept {
				slept = true
				<-time.After(sleep)
			}
		}})
		judge(t, q, s)
	})
}

// before calls f before every command.
type before struct{ f func(redis.Cmder) }

func (b before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			b.f(cmd)
		}
		return next(ctx, cmds)
	}
}

func (b before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		b.f(cmd)
		return next(ctx, cmd)
	}
}
