package worker

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

// idle plays a test in a bubble, with a worker that has had one job, and is idle.
func idle(t *testing.T, test func(t *testing.T, s *stand)) {
	t.Helper()
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Linger = 10 * time.Second
		s.start(s.q.grant(task1, host(1)))
		pass(5 * time.Second)
		if r := s.lastSaid(); !r.Idle || r.Bye || len(r.Jobs) > 0 {
			t.Fatalf("last report = %+v, want an idle one", r)
		}
		test(t, s)
	})
}

func TestAnIdleWorkerLooksWhenItsMasterSaysSo(t *testing.T) {
	idle(t, func(t *testing.T, s *stand) {
		calls := len(s.q.calls)
		late := s.q.put(task1, host(2))
		pass(2 * time.Second)
		if len(s.q.calls) != calls {
			t.Error("it asks the queue by itself")
		}
		s.orders <- jobs.OrderLook
		pass(5 * time.Second)
		if got := s.q.only(late.Job); got.Outcome != jobs.Succeeded {
			t.Errorf("the job that was due: %+v", got)
		}
		if r := s.lastSaid(); !r.Idle || r.Looked != 1 {
			t.Errorf("last report = %+v, want an idle one after one look", r)
		}
		s.orders <- jobs.OrderLook // nothing is due now
		pass(time.Second)
		if r := s.lastSaid(); !r.Idle || r.Looked != 2 {
			t.Errorf("last report = %+v, want an idle one after two looks", r)
		}
		began := time.Now()
		s.finish()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it ends after %s: a look without a job is no work", took)
		}
		if r := s.lastSaid(); !r.Bye || r.Looked != 2 || r.Error != "" {
			t.Errorf("last report = %+v", r)
		}
	})
}

// The master wakes the next child when this one has looked, so it hears of that at once.
func TestAWorkerThatHasLookedSaysSoAtOnce(t *testing.T) {
	idle(t, func(t *testing.T, s *stand) {
		s.hosts.run = func(ctx context.Context, _ fleet.Host, _ remote.Command) (remote.Result, error) {
			return works(ctx, 3*time.Second)
		}
		s.q.put(task1, host(2))
		s.orders <- jobs.OrderLook
		pass(20 * time.Millisecond)
		if r := s.lastSaid(); r.Looked != 1 || len(r.Jobs) != 1 {
			t.Errorf("last report = %+v, want the job that it found", r)
		}
		s.finish()
	})
}

// A job may be due while a worker is idle: without an order it is for others.
func TestAnIdleWorkerNeverAsksByItself(t *testing.T) {
	idle(t, func(t *testing.T, s *stand) {
		s.q.put(task1, host(2))
		calls := s.q.carriedOut()
		s.finish()
		if n := s.q.carriedOut(); n != calls {
			t.Errorf("%d calls without an order", n-calls)
		}
	})
}

func TestAnIdleWorkerEndsAtOnce(t *testing.T) {
	for name, say := range map[string]func(s *stand){
		"when its master is gone": func(s *stand) { close(s.orders) },
		"after a drain":           func(s *stand) { s.orders <- jobs.OrderDrain },
	} {
		t.Run(name, func(t *testing.T) {
			idle(t, func(t *testing.T, s *stand) {
				began := time.Now()
				say(s)
				s.finish()
				if took := time.Since(began); took > time.Second {
					t.Errorf("it ends after %s", took)
				}
			})
		})
	}
}

// pass lets fake time pass, and all that begins in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
