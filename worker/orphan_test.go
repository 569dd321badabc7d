package worker

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

// A worker without a master keeps the slot of its node until it ends. It waits with a result for a
// Redis that is away, but not for ever.
func TestAnOrphanWaitsForTheQueueUntilItsLocksHaveEndedForLong(t *testing.T) {
	const away = 20 * time.Hour
	for _, tt := range []struct {
		name   string
		orphan bool
		back   time.Duration // when the queue answers again
		gives  bool          // the worker gives up
	}{
		{"the queue stays away", true, away, true},
		{"the queue comes back in the last minute", true, attemptTime + time.Hour, false},
		{"a master is there, who decides", false, away, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				var said strings.Builder
				s.log = hclog.New(&hclog.LoggerOptions{Output: &said})
				began := time.Now()
				s.q.fault = func(int) (error, error) {
					if time.Since(began) < tt.back {
						return errAway, nil
					}
					return nil, nil
				}
				g := s.q.grant(task1, host(1))
				s.start(g)
				if tt.orphan {
					close(s.orders)
				}
				err := s.wait()
				if !tt.gives {
					if got := s.q.only(g.Job); err != nil || got.Outcome != jobs.Succeeded {
						t.Errorf("run: %v, result %+v, want it reported", err, got)
					}
					return
				}
				least := attemptTime + jobs.LockDelay(attemptTime) + time.Hour
				if took := time.Since(began); err == nil || took < least || took > least+10*time.Second {
					t.Errorf("err = %v after %s, want one after %s", err, took, least)
				}
				if bye := s.lastSaid(); !bye.Bye || bye.Error == "" || !slices.Equal(bye.Jobs, []jobs.ID{g.Job}) {
					t.Errorf("last report = %+v, want a bye with the error and the job", bye)
				}
				for _, want := range []string{"the result is not reported", string(g.Job), "outcome=succeeded"} {
					if !strings.Contains(said.String(), want) {
						t.Errorf("%q is not in the log:\n%s", want, &said)
					}
				}
			})
		})
	}
}

// A go at a checkpoint renews the lock.
func TestAnOrphanCountsFromRenewedLocks(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.specs[task1] = spec(t, shell("one"), shell("two"))
		s.hosts.run = func(ctx context.Context, _ fleet.Host, _ remote.Command) (remote.Result, error) {
			return works(ctx, 15*time.Second)
		}
		s.q.fault = func(int) (error, error) { return errAway, nil }
		began := time.Now()
		s.start(s.q.grant(task1, host(1)))
		close(s.orders)
		err := s.wait()
		least := 15*time.Second + attemptTime + jobs.LockDelay(attemptTime) + time.Hour
		if took := time.Since(began); err == nil || took < least || took > least+10*time.Second {
			t.Errorf("err = %v after %s, want one after %s", err, took, least)
		}
	})
}
