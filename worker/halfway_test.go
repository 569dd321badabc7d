package worker

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file tests disruptive jobs that are half way. A job remembers that it has disturbed its
// host, and no other job gets the group before the state of the host is known.

// disrupts makes the task a disruptive one, with the runbook of a text.
func (s *stand) disrupts(text string) {
	s.reads("disruptive: true\n" + strings.Replace(text, "disruptive: true\n", "", 1))
	spec := s.q.specs[task1]
	spec.Disruptive = true
	s.q.specs[task1] = spec
}

// A step failed and will be tried again: it has disturbed its host. If the host does not answer any
// more, nobody knows its state.
func TestAFailedTryHasDisturbedItsHost(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.disrupts(changing)
		s.says(map[string]string{"look": "state=old", "change": "busy#7"})
		tried, says := false, s.hosts.run
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			tried = tried || c.Shell == "change"
			return says(ctx, h, c)
		}
		s.hosts.dial = func(context.Context, fleet.Host) error {
			if tried {
				return fault(remote.KindUnreachable, false, errAway)
			}
			return nil
		}
		l := newLife(t, s)
		if r := l.live(10); r.Outcome != jobs.Unknown {
			t.Errorf("got %s, want unknown\n%s", r.Outcome, strings.Join(l.log, "\n"))
		}
	})
}

// A change that is neither confirmed nor rolled back is under way. The markers stay on every
// member, and the job keeps its group.
func TestTheMarkersOfAnArmedChangeStay(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		s.disrupts(swapping)
		h := swapper{proof: codes(scripts.NotYet)}
		s.hosts.run = h.run
		g := s.q.put(task1, "fw2", p.member)
		s.start()
		s.finish()
		r := s.q.only(g.Job)
		if h.state != "armed" || r.Kind != jobs.KindVerify || verdict.Recall(r.Saved).Marked == 0 || len(p.marked) != 3 {
			t.Errorf("the change is %s, said %+v, marked %v", h.state, r, p.marked)
		}
	})
}

// A job that lost its markers in the middle of a change waits until it can mark its group, and
// keeps the group.
func TestAnArmedChangeKeepsItsGroup(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		s.disrupts(swapping)
		p.away["fw3"] = true
		g := s.q.put(task1, "fw2", p.member, func(g *jobs.Grant) {
			since := jobs.MicrosOf(time.Now())
			g.Mode, g.Attempt = jobs.ModeContinue, 2
			g.Saved = verdict.Memory{Probe: &verdict.Probing{Since: since, Until: since.Add(time.Minute), Armed: true}}.String()
		})
		s.start()
		s.finish()
		if r := s.q.only(g.Job); r.Kind != jobs.KindDefer || r.Release {
			t.Errorf("got %+v, want it deferred, and its group kept", r)
		}
	})
}

// A reboot and a change ask the queue for a go of their own, right before they begin. A go that
// comes after the end of the window begins nothing, and the next attempt knows that.
func TestALateGoBeginsNoRebootAndNoChange(t *testing.T) {
	for name, book := range map[string]string{"reboot": rebooting, "change": swapping} {
		t.Run(name, func(t *testing.T) { lateGoOfItsOwn(t, book) })
	}
}

func lateGoOfItsOwn(t *testing.T, book string) {
	bubble(t, func(t *testing.T, s *stand) {
		s.disrupts(book)
		spec := s.q.specs[task1]
		spec.Timing = jobs.Timing{Window: true, Expect: time.Minute}
		s.q.specs[task1] = spec
		s.times.set(daily("0 0", "1h", "cutoff: 59m40s"))
		m, h, began := machine{up: time.Minute}, swapper{}, time.Now()
		s.hosts.run = func(ctx context.Context, host fleet.Host, c remote.Command) (remote.Result, error) {
			if strings.Contains(c.Shell, "verb=") {
				return h.run(ctx, host, c)
			}
			return m.run(ctx, host, c)
		}
		s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) {
			if time.Since(began) < time.Minute {
				return "", errAway
			}
			return jobs.Go, nil
		}
		got := s.one(func(g *jobs.Grant) { g.Timeout = time.Hour })
		if got.Kind != jobs.KindDefer || got.Until != jobs.MicrosOf(at("2 00:00:00")) || !got.Release {
			t.Errorf("got %+v", got)
		}
		if m.boots != 0 || len(h.verbs) != 0 {
			t.Errorf("told to boot %d times, told %q", m.boots, h.verbs)
		}
		if got.Saved == "" || verdict.Recall(got.Saved).Probe != nil {
			t.Errorf("kept %q, want that nothing has begun", got.Saved)
		}
	})
}

const twoSteps = `
name: two
timeout: 20s
steps:
  - name: one
    run: one
    save: {state: {match: 'state=(\S+)', default: none}}
  - name: two
    run: two {{saved.state}}
`

// When a job ends that has disturbed its host, the next job gets the group only if the host itself
// said how the step ended.
func TestAnEndHalfWayFreezesTheGroup(t *testing.T) {
	throttled := fault(remote.KindThrottled, false, errAway)
	for _, tt := range []struct {
		name   string
		dial   error
		step   error // of the second step
		exit   int
		change func(g *jobs.Grant)
		frozen bool
	}{
		{name: "the step says no", exit: 1},
		{name: "the step ran over its bound", step: fault(remote.KindTimeout, true, errAway)},
		{name: "no room at the door", dial: throttled, frozen: true},
		{name: "not there", dial: fault(remote.KindUnreachable, false, errAway), frozen: true},
		{name: "the node cannot", step: fault(remote.KindNode, false, errAway), frozen: true},
		{name: "the host is busy", step: fault(remote.KindBusy, false, errAway), frozen: true},
		{name: "its record cannot be read", step: fault(remote.KindRecord, false, errAway), frozen: true},
		{name: "not in the inventory", change: func(g *jobs.Grant) { g.Host = nil }, frozen: true},
		{name: "no such step", change: func(g *jobs.Grant) { g.Step = 7 }, frozen: true},
		{name: "no time", change: func(g *jobs.Grant) { g.Timeout = time.Second }, frozen: true},
		{name: "a step that cannot be made", frozen: true,
			change: func(g *jobs.Grant) { g.Saved = verdict.Memory{Disturbed: true}.String() }},
		{name: "not disturbed", dial: throttled, change: func(g *jobs.Grant) { g.Saved = "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.disrupts(twoSteps)
				s.hosts.dial = func(context.Context, fleet.Host) error { return tt.dial }
				s.hosts.run = func(context.Context, fleet.Host, remote.Command) (remote.Result, error) {
					return remote.Result{ExitCode: tt.exit}, tt.step
				}
				got := s.one(func(g *jobs.Grant) {
					g.Mode, g.Step, g.Attempt, g.Tries = jobs.ModeContinue, 1, 9, 9
					g.Saved = verdict.Memory{Disturbed: true, Saved: map[string]string{"state": "a"}}.String()
					if tt.change != nil {
						tt.change(g)
					}
				})
				frozen := got.KeepLock || got.Outcome == jobs.Unknown
				if got.Kind != jobs.KindEnd || frozen != tt.frozen {
					t.Errorf("%s %s: %s, frozen %t", got.Kind, got.Outcome, got.Error, frozen)
				}
			})
		})
	}
}

// After half of an on_fail the host is in a state that nobody planned, also if somebody cancelled
// the job.
func TestACancelInAnOnFailFreezesTheGroup(t *testing.T) {
	for _, disruptive := range []bool{true, false} {
		t.Run(fmt.Sprint(disruptive), func(t *testing.T) { cancelInOnFail(t, disruptive) })
	}
}

// The queue searches the memory of a job for these words, and a step cannot forge them.
func TestTheQueueCanReadAnUnfinishedOnFail(t *testing.T) {
	kept := verdict.Memory{MayHaveRun: true, Failed: &verdict.Failure{Keep: true}, Disturbed: true}.String()
	for _, want := range []string{jobs.MayHaveRun, jobs.Undoing, jobs.Disturbed, jobs.KeptBefore} {
		if !strings.Contains(kept, want) {
			t.Errorf("%s is not in %s", want, kept)
		}
	}
	said := verdict.Memory{Saved: map[string]string{"failed": `{"failed":{`, "disturbed": "true", "x": `"keep":true`}}
	for _, no := range []string{jobs.Undoing, jobs.Disturbed, jobs.KeptBefore} {
		if strings.Contains(said.String(), no) {
			t.Errorf("%s is in %s: a step can say it", no, said)
		}
	}
}

func cancelInOnFail(t *testing.T, disruptive bool) {
	bubble(t, func(t *testing.T, s *stand) {
		s.disrupts(changing)
		spec := s.q.specs[task1]
		spec.Disruptive = disruptive
		s.q.specs[task1] = spec
		s.says(map[string]string{"look": "state=old", "change": "oh#1"})
		var back atomic.Bool
		says := s.hosts.run
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			if c.Shell != "back" {
				return says(ctx, h, c)
			}
			back.Store(true)
			<-c.Stop
			return remote.Result{ExitCode: -1}, fault(remote.KindStopped, true, errAway)
		}
		s.q.stops = func(ids []jobs.ID) (map[jobs.ID]string, error) {
			if !back.Load() {
				return nil, nil
			}
			return map[jobs.ID]string{ids[0]: "alice: no"}, nil
		}
		if got := s.one(); got.Outcome != jobs.Cancelled || got.KeepLock != disruptive {
			t.Errorf("disruptive %t: %s %s, frozen %t", disruptive, got.Outcome, got.Error, got.KeepLock)
		}
	})
}

// A step wrote its markers and is then deferred, because its go came late. It leaves neither
// markers nor the group, and the next attempt knows that the markers are gone.
func TestAJobDeferredAfterItsMarkersLeavesTheGroup(t *testing.T) {
	look := shell("look")
	look.Kind = scripts.KindCheck
	for name, steps := range map[string][]scripts.Step{
		"at once":                  {shell("one")},
		"behind a step that looks": {look, shell("one")},
	} {
		t.Run(name, func(t *testing.T) { deferredBehindMarkers(t, steps) })
	}
}

func deferredBehindMarkers(t *testing.T, steps []scripts.Step) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		spec := windowed(t, time.Minute, steps...)
		spec.Disruptive = true
		s.q.specs[task1] = spec
		s.times.set(strings.Replace(daily("0 0", "1h", "cutoff: 59m40s"), "host: fw1", "host: fw2", 1))
		s.hosts.dial = func(ctx context.Context, _ fleet.Host) error {
			_, err := works(ctx, verdict.GoTime+time.Second)
			return err
		}
		began := time.Now()
		s.q.verdict = func(c jobs.Checkpoint) (jobs.Verdict, error) {
			if c.Step == len(steps)-1 && time.Since(began) < time.Minute {
				return "", errAway
			}
			return jobs.Go, nil
		}
		g := s.q.put(task1, "fw2", p.member, func(g *jobs.Grant) {
			g.Timeout, g.Token = time.Hour, jobs.Token(jobs.MicrosOf(began))
		})
		s.start()
		s.finish()
		r := s.q.only(g.Job)
		if r.Kind != jobs.KindDefer || !r.Release || len(p.told) != 6 || len(p.marked) != 0 {
			t.Errorf("got %+v, told %q", r, p.told)
		}
		if r.Saved == "" || verdict.Recall(r.Saved).Marked != 0 {
			t.Errorf("kept %q, want that nothing is marked", r.Saved)
		}
	})
}
