package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// A reboot and a change tell the queue that they begin, right before they do. If they do not,
// for the answer was lost and then the zone was halted, or for nothing could be sent, that is
// taken back: the next attempt would believe it, and ask for no window.
func TestWhatWasToldAndDidNotBeginIsTakenBack(t *testing.T) {
	for name, book := range map[string]string{"reboot": rebooting, "change": swapping} {
		t.Run(name+" that was halted", func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.disrupts(book)
				s.hosts.run = onlySaysItsBoot
				asked := 0
				s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) {
					if asked++; asked == 1 {
						return "", errAway // it was carried out
					}
					return jobs.Stop, nil
				}
				takenBack(t, s)
			})
		})
		t.Run(name+" that was not sent", func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.disrupts(book)
				s.hosts.run = onlySaysItsBoot
				takenBack(t, s)
			})
		})
	}
}

// The answer to the question for the next step got lost, and then the zone was halted: the
// queue may be at that step or at the one before, which was a reboot. What is said is right
// for both: else the next attempt takes what is kept of the reboot for that of its own step.
func TestAStepThatWasToldIsWhereTheJobGoesOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.disrupts(rebooting)
		m := machine{told: time.Now().Add(-time.Hour)}
		s.hosts.run = m.run
		asked := 0
		s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) {
			if asked++; asked == 1 {
				return "", errAway
			}
			return jobs.Stop, nil
		}
		got := s.one(func(g *jobs.Grant) {
			g.Mode, g.Attempt = jobs.ModeContinue, 2
			g.Saved = memory{Probe: &probing{Boot: bootA, Told: true}, Disturbed: true}.String()
		})
		if got.Kind != jobs.KindWait || got.Step != 1 || recall(got.Saved).Probe != nil {
			t.Errorf("said %s at step %d, and that %s is kept", got.Kind, got.Step+1, got.Saved)
		}
	})
}

// onlySaysItsBoot is a host to which nothing else can be sent.
func onlySaysItsBoot(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
	if strings.HasPrefix(c.Shell, "cat /proc/sys/kernel/random/boot_id") {
		return new(machine).run(ctx, h, c)
	}
	return remote.Result{ExitCode: -1}, fault(remote.KindNode, false, errAway)
}

// takenBack fails unless what the queue was told of a beginning is taken back.
func takenBack(t *testing.T, s *stand) {
	t.Helper()
	got := s.one()
	if n := len(s.q.asked); n == 0 || recall(s.q.asked[0].Saved).Probe == nil {
		t.Fatalf("the queue was asked %+v", s.q.asked)
	}
	if got.Kind == jobs.KindEnd || got.Saved == "" || recall(got.Saved).Probe != nil {
		t.Errorf("said %s, and that %q is kept: want that nothing has begun", got.Kind, got.Saved)
	}
}

// A lost job comes also if it was cancelled, with what is left of the lock of its last
// attempt. A look, which is done once more at once, asks the queue first.
func TestALookOfALostJobAsksFirst(t *testing.T) {
	for _, bound := range []time.Duration{0, time.Second} {
		for verdict, want := range map[jobs.Verdict]int{jobs.Go: 1, jobs.Stop: 0} {
			t.Run(fmt.Sprintf("%s, %s left", verdict, bound), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *stand) {
					look := shell("look")
					look.Kind = scripts.KindCheck
					s.q.specs[task1] = spec(t, look)
					s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) { return verdict, nil }
					got := s.one(func(g *jobs.Grant) { g.Mode, g.Attempt, g.Bound = jobs.ModeLost, 2, bound })
					if n := len(s.hosts.started()); n != want || len(s.q.asked) != 1 {
						t.Errorf("asked %d times, looked %d times, and said %+v", len(s.q.asked), n, got)
					}
				})
			})
		}
	}
}

// A host that may have been told to reboot by a worker that was lost is not told again when
// its job is to stop. What is said lets the queue not take it for one that nobody touched, if
// it was cancelled.
func TestAHostThatMayRebootIsNotGivenBackAsUntouched(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.disrupts(rebooting)
		m := machine{up: time.Minute}
		s.hosts.run = m.run
		s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) { return jobs.Stop, nil }
		got := s.one(func(g *jobs.Grant) {
			g.Mode, g.Attempt = jobs.ModeLost, 2
			g.Saved = memory{Probe: &probing{Boot: bootA}}.String()
		})
		if p := recall(got.Saved).Probe; got.Kind != jobs.KindVerify || p == nil || !m.told.IsZero() {
			t.Errorf("said %+v", got)
		}
	})
}

// Nor is a change that a worker which was lost may have begun, and of which the host does not
// know yet: what was kept of it stays.
func TestAChangeThatMayHaveBegunIsNotGivenBackAsUntouched(t *testing.T) {
	for name, stops := range map[string]bool{"stopped": true, "not sent": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.disrupts(swapping)
				var h swapper
				s.hosts.run = func(ctx context.Context, host fleet.Host, c remote.Command) (remote.Result, error) {
					if strings.Contains(c.Shell, "\nverb=arm\n") {
						return remote.Result{ExitCode: -1}, fault(remote.KindNode, false, errAway)
					}
					return h.run(ctx, host, c)
				}
				s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) {
					if stops && len(h.verbs) > 0 { // the host was asked
						return jobs.Stop, nil
					}
					return jobs.Go, nil
				}
				since := jobs.MicrosOf(time.Now().Add(-time.Hour))
				kept := probing{Since: since, Free: since.Add(time.Minute), Until: since.Add(2 * time.Minute)}
				got := s.one(func(g *jobs.Grant) {
					g.Mode, g.Attempt = jobs.ModeLost, 2
					g.Token = jobs.Token(jobs.MicrosOf(time.Now()))
					g.Saved = memory{Probe: &kept}.String()
				})
				p := recall(got.Saved).Probe
				if strings.Join(h.verbs, " ") != "prove" || p == nil || p.Since != since || got.Kind == jobs.KindEnd ||
					stops && got.Kind != jobs.KindVerify {
					t.Errorf("the host did %v; said %+v", h.verbs, got)
				}
			})
		})
	}
}
