package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

// cancel cancels a job after some time.
func (s *stand) cancel(id jobs.ID, after time.Duration) {
	began := time.Now()
	s.q.stops = func([]jobs.ID) (map[jobs.ID]string, error) {
		if time.Since(began) < after {
			return nil, nil
		}
		return map[jobs.ID]string{id: "bob"}, nil
	}
}

// obeys is a command that takes a time d, and stops within 50 ms.
func obeys(ctx context.Context, stop <-chan struct{}, d time.Duration) (remote.Result, error) {
	select {
	case <-time.After(d):
		return remote.Result{}, nil
	case <-ctx.Done():
		return remote.Result{ExitCode: -1}, fault(remote.KindCancelled, true, context.Cause(ctx))
	case <-stop:
		<-time.After(50 * time.Millisecond)
		return remote.Result{ExitCode: 143}, fault(remote.KindStopped, true, errors.New("stopped"))
	}
}

func TestACancelledJobIsStoppedAtOnce(t *testing.T) {
	for after := time.Duration(0); after < 15*time.Second; after += 1700 * time.Millisecond {
		t.Run(after.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.q.specs[task1] = spec(t, shell("one"), shell("two"))
				s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					return obeys(ctx, c.Stop, 10*time.Second)
				}
				g := s.q.grant(task1, "fw1")
				s.cancel(g.Job, after)
				began := time.Now()
				s.start(g)
				s.finish()
				r, late := s.q.only(g.Job), time.Since(began)-after
				if r.Outcome != jobs.Cancelled || *r.ExitCode != 143 || late > stopsEvery+200*time.Millisecond {
					t.Errorf("%+v, %s later", r, late)
				}
			})
		})
	}
}

func TestAJobThatIsCancelledBetweenSteps(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(s *stand)
		want string
	}{
		{"connecting", func(s *stand) {
			s.hosts.dial = func(ctx context.Context, _ fleet.Host) error {
				<-ctx.Done()
				return fault(remote.KindCancelled, false, context.Cause(ctx))
			}
		}, "bob; stopped before step 1"},
		{"a command that could not be stopped before its end", func(s *stand) {
			s.hosts.run = func(context.Context, fleet.Host, remote.Command) (remote.Result, error) {
				<-time.After(3 * time.Second)
				return remote.Result{}, nil
			}
		}, "bob; stopped before step 2 (two)"},
		{"waiting for a go", func(s *stand) {
			s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) { return "", errAway }
		}, "bob; stopped before step 2 (two)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.q.specs[task1] = spec(t, shell("one"), shell("two"))
				tt.set(s)
				g := s.q.grant(task1, "fw1")
				s.cancel(g.Job, 1500*time.Millisecond)
				s.start(g)
				s.finish()
				if r := s.q.only(g.Job); r.Outcome != jobs.Cancelled || r.Error != tt.want {
					t.Errorf("%+v, want %q", r, tt.want)
				}
			})
		})
	}
}

func TestStopsAreAskedForOnceASecond(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.cfg.Slots = 4
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			if h.Name == "quick" {
				return obeys(ctx, c.Stop, 500*time.Millisecond)
			}
			return obeys(ctx, c.Stop, 5300*time.Millisecond)
		}
		s.start(s.q.grant(task1, "a"), s.q.grant(task1, "b"), s.q.grant(task1, "quick"))
		s.finish()
		want := strings.Repeat("[0000000001:a 0000000001:b]", 5)
		if got := strings.ReplaceAll(fmt.Sprint(s.q.stopsFor), "] [", "]["); got != "["+want+"]" {
			t.Errorf("asked for %s, want %s", got, want)
		}
	})
}

func TestShortJobsAskForNoStops(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			return obeys(ctx, c.Stop, 900*time.Millisecond)
		}
		for i := range 20 {
			s.q.put(task1, host(i))
		}
		s.start()
		s.finish()
		if n := len(s.q.stopsFor); n != 0 {
			t.Errorf("asked %d times", n)
		}
	})
}

// Without an answer the worker stops nothing, and asks again.
func TestTheQuestionForStopsIsAskedAgainWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			return obeys(ctx, c.Stop, 15*time.Second)
		}
		g := s.q.grant(task1, "fw1")
		s.q.stops = func([]jobs.ID) (map[jobs.ID]string, error) {
			if len(s.q.stopsFor) < 4 {
				return nil, errAway
			}
			return map[jobs.ID]string{g.Job: "bob", "0000000009:other": "eve"}, nil
		}
		s.start(g)
		s.finish()
		if r := s.q.only(g.Job); r.Outcome != jobs.Cancelled || len(s.q.stopsFor) != 4 {
			t.Errorf("%+v after %d questions", r, len(s.q.stopsFor))
		}
	})
}

// A question without an answer delays neither the end nor the bye.
func TestAQuestionForStopsDoesNotDelayTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		g := s.q.grant(task1, "fw1")
		s.q.slowStops = time.Hour
		s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			return obeys(ctx, c.Stop, 1100*time.Millisecond)
		}
		began := time.Now()
		s.start(g)
		s.finish()
		if took := time.Since(began); took > 1200*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
}
