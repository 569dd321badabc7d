package worker

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

// A process was stopped beyond the end of a job. Whether the clerk or the timer of the lease sees
// that first, the attempt gets its time to end.
func TestAWorkerThatWasStoppedDoesNotBlameTheJob(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.hosts.run = func(ctx context.Context, _ fleet.Host, _ remote.Command) (remote.Result, error) {
			return works(ctx, time.Hour)
		}
		g := s.q.grant(task1, host(1))
		s.start(g)
		time.Sleep(time.Second)
		synctest.Wait()
		s.slept.Store(int64(time.Hour))
		s.orders <- jobs.OrderDrain // the clerk looks before the timer of the lease fires
		if err := s.wait(); err != nil {
			t.Fatal(err)
		}
		got := s.q.only(g.Job)
		if got.Outcome != jobs.Unknown || !strings.Contains(got.Error, "deadline was reached") {
			t.Errorf("the job ended %s: %s", got.Outcome, got.Error)
		}
	})
}
