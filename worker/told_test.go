package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/windows"
	"muster/worker/verdict"
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
			g.Saved = verdict.Memory{Probe: &verdict.Probing{Boot: bootA, Told: true}, Disturbed: true}.String()
		})
		if got.Kind != jobs.KindWait || got.Step != 1 || verdict.Recall(got.Saved).Probe != nil {
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
	if n := len(s.q.asked); n == 0 || verdict.Recall(s.q.asked[0].Saved).Probe == nil {
		t.Fatalf("the queue was asked %+v", s.q.asked)
	}
	if got.Kind == jobs.KindEnd || got.Saved == "" || verdict.Recall(got.Saved).Probe != nil {
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
			g.Saved = verdict.Memory{Probe: &verdict.Probing{Boot: bootA}}.String()
		})
		if p := verdict.Recall(got.Saved).Probe; got.Kind != jobs.KindVerify || p == nil || !m.told.IsZero() {
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
				kept := verdict.Probing{Since: since, Free: since.Add(time.Minute), Until: since.Add(2 * time.Minute)}
				got := s.one(func(g *jobs.Grant) {
					g.Mode, g.Attempt = jobs.ModeLost, 2
					g.Token = jobs.Token(jobs.MicrosOf(time.Now()))
					g.Saved = verdict.Memory{Probe: &kept}.String()
				})
				p := verdict.Recall(got.Saved).Probe
				if strings.Join(h.verbs, " ") != "prove" || p == nil || p.Since != since || got.Kind == jobs.KindEnd ||
					stops && got.Kind != jobs.KindVerify {
					t.Errorf("the host did %v; said %+v", h.verbs, got)
				}
			})
		})
	}
}

// apart is a task of a runbook that needs a window, which opens at six.
func apart(s *stand, book string) {
	s.disrupts(book)
	spec := s.q.specs[task1]
	spec.Timing = jobs.Timing{Window: true, Expect: time.Minute}
	s.q.specs[task1] = spec
	s.times.set(daily("0 6", "1h"))
}

// A worker got its go for a reboot, and died before it told the host, or right behind that. The
// next one comes when the window is over: it told a host to reboot that nothing had ever been done
// to. Now it only looks whether the host goes down, and the reboot waits for its window.
func TestARebootThatMayHaveBeenToldIsToldInItsWindowOnly(t *testing.T) {
	for _, mode := range []jobs.Mode{jobs.ModeLost, jobs.ModeContinue} {
		t.Run(string(mode), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				apart(s, rebooting)
				m := machine{up: time.Minute}
				s.hosts.dial, s.hosts.run = m.dial, m.run
				l := newLife(t, s)
				l.grant.Mode, l.grant.Attempt = mode, 1
				l.grant.Saved = verdict.Memory{Probe: &verdict.Probing{Boot: bootA}}.String()
				r := l.live(7)
				if r.Kind != jobs.KindDefer || r.Until != jobs.MicrosOf(at("1 06:00:00")) || m.boots != 0 ||
					keptBoot(r) != bootA || r.Release {
					t.Fatalf("told to boot %d times, and said %+v\n%s", m.boots, r, strings.Join(l.log, "\n"))
				}
				if took := time.Since(l.began); took < 5*time.Minute {
					t.Errorf("it was looked at for %s only: it may have been about to go down", took)
				}
				<-time.After(time.Until(at("1 06:00:00")))
				l.grant.Mode, l.grant.Saved = jobs.ModeContinue, r.Saved
				if r = l.live(10); r.Outcome != jobs.Succeeded || m.boots != 1 {
					t.Errorf("told to boot %d times, and said %+v\n%s", m.boots, r, strings.Join(l.log, "\n"))
				}
			})
		})
	}
}

// keptBoot is the boot id that a result keeps.
func keptBoot(r jobs.Result) string {
	if p := verdict.Recall(r.Saved).Probe; p != nil {
		return p.Boot
	}
	return ""
}

// Nor does such a reboot begin in a freeze, whether its runbook needs a window or not.
func TestARebootThatMayHaveBeenToldIsNotToldInAFreeze(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.disrupts(rebooting)
		s.times.set("", windows.FreezeOrder{Name: "outage", Level: "everyone", By: "ann", Reason: "INC-7",
			From: at("1 00:00:00").Add(-time.Hour), Until: at("1 06:00:00")})
		m := machine{up: time.Minute}
		s.hosts.dial, s.hosts.run = m.dial, m.run
		l := newLife(t, s)
		l.grant.Mode, l.grant.Attempt = jobs.ModeLost, 1
		l.grant.Saved = verdict.Memory{Probe: &verdict.Probing{Boot: bootA}}.String()
		if r := l.live(7); r.Kind != jobs.KindDefer || r.Until != jobs.MicrosOf(at("1 06:00:00")) || m.boots != 0 {
			t.Errorf("told to boot %d times, and said %+v\n%s", m.boots, r, strings.Join(l.log, "\n"))
		}
	})
}

// A host that was told goes down while it is looked at, and the job goes on.
func TestAHostThatWasToldGoesDownWhileItIsLookedAt(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		apart(s, rebooting)
		m := machine{told: time.Now(), down: 50 * time.Second, up: 2 * time.Minute}
		s.hosts.dial, s.hosts.run = m.dial, m.run
		l := newLife(t, s)
		l.grant.Mode, l.grant.Attempt = jobs.ModeLost, 1
		l.grant.Saved = verdict.Memory{Probe: &verdict.Probing{Boot: bootA}}.String()
		if r := l.live(10); r.Outcome != jobs.Succeeded || m.boots != 0 {
			t.Errorf("told to boot %d times, and said %+v\n%s", m.boots, r, strings.Join(l.log, "\n"))
		}
	})
}

// A reboot whose first go was used, or lost, and whose next one comes when the window is over.
func TestALateGoTellsNoHostAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		apart(s, rebooting)
		s.times.set(daily("0 0", "1h", "cutoff: 59m40s"))
		m, began := machine{up: time.Minute}, time.Now()
		s.hosts.dial, s.hosts.run = m.dial, m.run
		s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) {
			if time.Since(began) < time.Minute {
				return "", errAway
			}
			return jobs.Go, nil
		}
		got := s.one(func(g *jobs.Grant) {
			g.Mode, g.Attempt, g.Timeout = jobs.ModeContinue, 2, time.Hour
			g.Saved = verdict.Memory{Probe: &verdict.Probing{Boot: bootA}}.String()
		})
		if got.Kind != jobs.KindVerify || m.boots != 0 || verdict.Recall(got.Saved).Probe == nil {
			t.Errorf("told to boot %d times, and said %+v", m.boots, got)
		}
	})
}

// Likewise of a change: its host says that it knows nothing of it, so it has not begun.
func TestAChangeThatAHostKnowsNothingOfIsMadeInItsWindowOnly(t *testing.T) {
	for _, fence := range []fleet.Fence{fleet.FenceNone, fleet.FenceAuto} {
		t.Run(string(fence), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				apart(s, swapping)
				h := swapper{}
				s.hosts.dial, s.hosts.run = h.dial, h.run
				l := newLife(t, s)
				l.grant.Mode, l.grant.Attempt, l.grant.Host.Fence = jobs.ModeLost, 1, fence
				now := jobs.MicrosOf(time.Now())
				l.grant.Saved = verdict.Memory{Probe: &verdict.Probing{Since: now, Free: now.Add(20 * time.Second),
					Until: now.Add(time.Minute)}}.String()
				r := l.live(2)
				if r.Kind != jobs.KindDefer || r.Until != jobs.MicrosOf(at("1 06:00:00")) || h.state != "" ||
					verdict.Recall(r.Saved).Probe != nil || slices.Contains(h.verbs, "arm") {
					t.Fatalf("told %q, and said %+v\n%s", h.verbs, r, strings.Join(l.log, "\n"))
				}
				<-time.After(time.Until(at("1 06:00:00")))
				l.grant.Mode, l.grant.Saved = jobs.ModeContinue, r.Saved
				if r = l.live(10); r.Outcome != jobs.Succeeded || h.state != "confirmed" {
					t.Errorf("told %q, and said %+v\n%s", h.verbs, r, strings.Join(l.log, "\n"))
				}
			})
		})
	}
}
