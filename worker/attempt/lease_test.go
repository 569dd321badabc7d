package attempt

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"muster/worker/verdict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestALeaseEndsByTheBootClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		boot := time.Now()
		var asleep atomic.Int64 // the sleep of the machine, in which timers of Go stand still
		clock := func() time.Duration { return time.Since(boot) + time.Duration(asleep.Load()) }

		ctx, l := newLease(t.Context(), clock, 20*time.Second)
		time.Sleep(15 * time.Second)
		if !l.extend(40 * time.Second) {
			t.Fatal("a go before the end did not extend the lease")
		}
		time.Sleep(24 * time.Second)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("ended before its end")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, verdict.ErrOverdue) {
			t.Errorf("at the end: %v", err)
		}
		l.stop()

		ctx, l = newLease(t.Context(), clock, time.Hour)
		time.Sleep(time.Second)
		asleep.Store(int64(2 * time.Hour))
		time.Sleep(clockCheck)
		synctest.Wait()
		if err := context.Cause(ctx); !errors.Is(err, verdict.ErrOverdue) {
			t.Errorf("after a sleep of the machine: %v", err)
		}
		l.stop()

		ctx, l = newLease(t.Context(), clock, clock()+time.Hour)
		asleep.Add(int64(2 * time.Hour))
		if l.extend(clock() + time.Hour) {
			t.Error("a go that came after the end extended the lease")
		}
		if err := context.Cause(ctx); !errors.Is(err, verdict.ErrOverdue) {
			t.Errorf("after a go that came too late: %v", err)
		}
		l.stop()

		ctx, l = newLease(t.Context(), clock, clock()+time.Hour)
		l.stop()
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("after stop: %v", err)
		}
		time.Sleep(2 * time.Hour) // no timer is left that would end the lease
	})
}
