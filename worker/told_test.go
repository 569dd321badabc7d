package worker

import (
	"context"
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

// The lock of a lost job is the rest of that of its last attempt. A look, which is done at
// once again, asks the queue for a lock that lasts as long as it may.
func TestALookOfALostJobHasItsOwnLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		look := shell("look")
		look.Kind = scripts.KindCheck
		s.q.specs[task1] = spec(t, look)
		got := s.one(func(g *jobs.Grant) { g.Mode, g.Attempt, g.Bound = jobs.ModeLost, 2, time.Second })
		if got.Outcome != jobs.Succeeded || len(s.q.asked) != 1 {
			t.Errorf("the queue was asked %+v, and told %+v", s.q.asked, got)
		}
	})
}
