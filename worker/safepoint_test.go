package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/worker/verdict"
)

// Nobody knows whether the window of a job has ended if the clock of Redis has jumped meanwhile.
func TestAJobStopsAtASafePointWhileTheClocksDiffer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, window string
		want         jobs.Kind
	}{
		{"it may stop", daily("0 0", "1h", "at_end: stop_at_safe_point"), jobs.KindDefer},
		{"it finishes in any case", daily("0 0", "1h"), jobs.KindEnd},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.q.specs[task1] = windowed(t, 10*time.Minute, shell("one"), shell("two"))
				s.times.set(test.window)
				s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					r, err := works(ctx, 10*time.Second)
					s.times.differ(3 * time.Second)
					return r, err
				}
				got := s.one()
				if got.Kind != test.want {
					t.Errorf("got %s %s: %s", got.Kind, got.Outcome, got.Error)
				}
				if got.Kind == jobs.KindDefer && (got.Step != 1 || got.Release || got.Delay != verdict.DoubtDelay ||
					!strings.Contains(got.Error, "3s off that of Redis")) {
					t.Errorf("deferred at step %d by %s, released: %t: %s", got.Step, got.Delay, got.Release, got.Error)
				}
			})
		})
	}
}

// differ sets the clock of the worker's machine apart from that of Redis.
func (f *fakeTimes) differ(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skew = by
}
