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

// A reboot and a change announce their beginning to the queue. They may still not begin: the answer
// gets lost and then the zone is halted, or the command cannot be sent. Then the worker retracts
// the announcement. Otherwise the next attempt would believe it, and ask for no window.
func TestAnAnnouncedStepThatDidNotBeginIsRetracted(t *testing.T) {
	for name, book := range map[string]string{"reboot": rebooting, "change": swapping} {
		t.Run(name+" that was halted", func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.disrupts(book)
				s.hosts.run = onlySaysItsBoot
				asked := 0
				s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) {
					if asked++; asked == 1 {
						return "", errAway // the queue has carried out the call
					}
					return jobs.Stop, nil
				}
				retracted(t, s)
			})
		})
		t.Run(name+" that was not sent", func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.disrupts(book)
				s.hosts.run = onlySaysItsBoot
				retracted(t, s)
			})
		})
	}
}

// The answer to the question for the next step gets lost, and then the zone is halted. The queue
// may hold that step or the step before, which was a reboot. The result must be right for both:
// otherwise the next attempt takes the memory of the reboot for the memory of its own step.
func TestAJobContinuesAtTheStepThatItAnnounced(t *testing.T) {
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

// onlySaysItsBoot is a host that answers only the question for its boot id.
func onlySaysItsBoot(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
	if strings.HasPrefix(c.Shell, "cat /proc/sys/kernel/random/boot_id") {
		return new(machine).run(ctx, h, c)
	}
	return remote.Result{ExitCode: -1}, fault(remote.KindNode, false, errAway)
}

// retracted fails unless the job announces a beginning to the queue, and retracts it.
func retracted(t *testing.T, s *stand) {
	t.Helper()
	got := s.one()
	if n := len(s.q.asked); n == 0 || verdict.Recall(s.q.asked[0].Saved).Probe == nil {
		t.Fatalf("the queue was asked %+v", s.q.asked)
	}
	if got.Kind == jobs.KindEnd || got.Saved == "" || verdict.Recall(got.Saved).Probe != nil {
		t.Errorf("said %s, and that %q is kept: want that nothing has begun", got.Kind, got.Saved)
	}
}

// The queue hands out a lost job also if it is cancelled, with the rest of the lock of its last
// attempt. A check may run again at once, but its worker asks the queue first.
func TestACheckOfALostJobAsksTheQueueFirst(t *testing.T) {
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

// A lost worker may have sent the reboot. When the queue stops the job, the next worker does not
// send it again. Its result shows that the host may be disturbed, also if the job is cancelled.
func TestAJobWhoseHostMayRebootIsNotReleasedAsUntouched(t *testing.T) {
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

// A lost worker may have begun a change of which the host does not know yet. The memory of the
// change stays.
func TestAChangeThatMayHaveBegunIsNotReleasedAsUntouched(t *testing.T) {
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
					if stops && len(h.verbs) > 0 { // the worker has asked the host
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

// apart makes the task one of a runbook that needs a window, which opens at six.
func apart(s *stand, book string) {
	s.disrupts(book)
	spec := s.q.specs[task1]
	spec.Timing = jobs.Timing{Window: true, Expect: time.Minute}
	s.q.specs[task1] = spec
	s.times.set(daily("0 6", "1h"))
}

// A worker got its go for a reboot, and died right before or right after it sent the command. The
// next worker comes after the end of the window. It only looks whether the host goes down, and the
// reboot waits for its window. Once it sent the reboot to a host that nothing had ever disturbed.
func TestARebootThatMayHaveBeenSentIsRepeatedInItsWindowOnly(t *testing.T) {
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
					t.Errorf("the worker looked for %s only: the host may have been about to go down", took)
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

// keptBoot returns the boot id in the memory of a result.
func keptBoot(r jobs.Result) string {
	if p := verdict.Recall(r.Saved).Probe; p != nil {
		return p.Boot
	}
	return ""
}

// The reboot is not sent again in a freeze either, whether its runbook needs a window or not.
func TestARebootThatMayHaveBeenSentIsNotRepeatedInAFreeze(t *testing.T) {
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

// The lost worker has sent the reboot. The host goes down while the next worker looks, and the job
// continues.
func TestARebootThatWasSentIsSeenOnItsHost(t *testing.T) {
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

// The first go of a reboot was used, or got lost, and the next go comes after the end of the
// window.
func TestALateGoRepeatsNoReboot(t *testing.T) {
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

// The host does not know the change, so the change has not begun.
func TestAChangeThatItsHostDoesNotKnowBeginsInItsWindowOnly(t *testing.T) {
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
