package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// pair is a group of hosts with markers, in memory.
type pair struct {
	names   []string
	none    string                   // the host that has no fence
	marked  map[string]remote.Marker // the marker that each host carries
	told    []string                 // "host +job" and "host -job", in order
	away    map[string]bool          // the hosts that cannot be marked
	busy    string                   // the host on which a step is at work
	fates   map[jobs.ID]jobs.Standing
	unknown error // the error of Kin
}

func (p *pair) Kin(context.Context, string, string) (map[string][]string, error) {
	return map[string][]string{"g": p.names}, p.unknown
}

func (p *pair) Hosts(_ context.Context, _, _ string, names []string) (out []fleet.Host, _ error) {
	for _, n := range names {
		out = append(out, p.host(n))
	}
	return out, nil
}

func (p *pair) host(name string) fleet.Host {
	h := fleet.Host{Name: name, Address: "127.0.0.1", Port: 22, Zone: "z", Group: "g", Fence: fleet.FenceAuto}
	if name == p.none {
		h.Fence = fleet.FenceNone
	}
	return h
}

func (p *pair) Fate(_ context.Context, _, _ string, id jobs.ID) (jobs.Standing, error) {
	return p.fates[id], nil
}

// mark acts like marker.sh.
func (p *pair) mark(h fleet.Host, m remote.Marker) (remote.Marking, error) {
	if p.away[h.Name] {
		return remote.Marking{}, fault(remote.KindLost, true, errors.New("no answer"))
	}
	if p.busy == h.Name {
		return remote.Marking{}, fault(remote.KindBusy, false, errors.New("a step is at work on it"))
	}
	is, carried := p.marked[h.Name]
	switch {
	case m.Off && carried && is.Job == m.Job:
		p.told = append(p.told, h.Name+" -"+m.Job)
		delete(p.marked, h.Name)
	case !m.Off && carried && is.Job != m.Job && (m.Over.Job != is.Job || m.Over.Token != is.Token):
		return remote.Marking{Other: &remote.Marked{Group: is.Group, Host: is.Host, Job: is.Job, Token: is.Token,
			Until: is.Until}}, nil
	case !m.Off:
		p.told = append(p.told, h.Name+" +"+m.Job)
		p.marked[h.Name] = m
	}
	return remote.Marking{}, nil
}

// inPair runs a test of a job on fw2, in a group of three hosts.
func inPair(t *testing.T, f func(t *testing.T, s *stand, p *pair)) {
	bubble(t, func(t *testing.T, s *stand) {
		p := &pair{names: []string{"fw1", "fw2", "fw3"}, marked: map[string]remote.Marker{},
			away: map[string]bool{}, fates: map[jobs.ID]jobs.Standing{}}
		s.hosts.kin, s.hosts.mark = p, p.mark
		s.disturbing(shell("only"))
		f(t, s, p)
	})
}

// disturbing makes the task one that disturbs its hosts.
func (s *stand) disturbing(steps ...scripts.Step) {
	sp := spec(s.t, steps...)
	sp.Disruptive = true
	s.q.specs[task1] = sp
}

// member makes a grant one of a member of the pair.
func (p *pair) member(g *jobs.Grant) {
	h := p.host(g.Host.Name)
	g.Host, g.Token = &h, 1_000_000_000_000_000+g.Token
}

// otherJob returns a job of another task, on a host.
func otherJob(host string) jobs.ID { return jobs.NewID("0000000002", host) }

func TestAllMembersAreMarkedBeforeAStepThatDisturbs(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			if len(p.marked) != 3 {
				t.Errorf("at the step %d members are marked, want 3", len(p.marked))
			}
			if c.Record == nil || !c.Record.Marked {
				t.Errorf("the host is told %+v, not that the job has marked its group", c.Record)
			}
			return works(ctx, time.Second)
		}
		g := s.q.put(task1, "fw2", p.member)
		s.start()
		s.finish()
		if r := s.q.only(g.Job); r.Outcome != jobs.Succeeded {
			t.Errorf("got %+v", r)
		}
		job := string(g.Job)
		want := []string{"fw1 +" + job, "fw2 +" + job, "fw3 +" + job, "fw1 -" + job, "fw2 -" + job, "fw3 -" + job}
		if !slices.Equal(p.told, want) {
			t.Errorf("the members were told %q, want %q", p.told, want)
		}
	})
}

// A step that disturbs nothing, or whose host is in no group, marks no host.
func TestOnlyDisruptiveStepsMarkTheGroup(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		look := shell("look")
		look.Kind = scripts.KindCheck
		s.disturbing(look)
		s.q.put(task1, "fw2", p.member)
		s.start()
		s.finish()
		if len(p.told) > 0 {
			t.Errorf("a check was marked: %q", p.told)
		}
	})
}

// If a member cannot be marked, for whatever reason, no step starts, no try counts, and the markers
// on the other members go.
func TestNothingStartsIfAMemberCannotBeMarked(t *testing.T) {
	for name, test := range map[string]struct {
		doubt func(p *pair)
		words string
	}{
		"no answer": {func(p *pair) { p.away["fw3"] = true }, "fw3 could not be marked"},
		"no groups": {func(p *pair) { p.unknown = errAway }, "the members of group g are not known"},
		"it runs": {func(p *pair) {
			p.marked["fw3"] = remote.Marker{Job: string(otherJob("fw3")), Host: "fw3", Token: 1}
			p.fates[otherJob("fw3")] = jobs.Standing{State: jobs.Running}
		}, "fw3 carries the marker of job 0000000002:fw3, which disturbs fw3: it has not ended"},
		"unknown": {func(p *pair) {
			p.marked["fw3"] = remote.Marker{Job: string(otherJob("fw3")), Host: "fw3", Token: 1}
			p.fates[otherJob("fw3")] = jobs.Standing{State: jobs.Ended, Outcome: jobs.Unknown}
		}, "it ended unknown: look at the hosts, then `muster group clear g --reason …`"},
		"forgotten": {func(p *pair) {
			p.marked["fw3"] = remote.Marker{Job: string(otherJob("fw3")), Host: "fw3", Token: 1, Until: 9e17}
		}, "Redis has forgotten it"},
	} {
		t.Run(name, func(t *testing.T) {
			inPair(t, func(t *testing.T, s *stand, p *pair) {
				test.doubt(p)
				g := s.q.put(task1, "fw2", p.member)
				s.start()
				s.finish()
				r := s.q.only(g.Job)
				if r.Kind != jobs.KindDefer || r.Delay <= 0 || !r.Release || !strings.Contains(r.Error, test.words) {
					t.Errorf("got %+v, want it deferred with %q", r, test.words)
				}
				if n := len(s.hosts.started()); n > 0 {
					t.Errorf("%d steps were started", n)
				}
				if verdict.Recall(r.Saved).Marked != 0 || p.marked["fw1"].Job != "" || p.marked["fw2"].Job != "" {
					t.Errorf("what stays: %v, %q", p.marked, r.Saved)
				}
			})
		})
	}
}

// While a member cannot be reached at all, no step disturbs the other members.
func TestAMemberThatIsAwayProtectsTheOtherOnes(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		s.hosts.dial = func(_ context.Context, h fleet.Host) error {
			if h.Name == "fw1" {
				return fault(remote.KindUnreachable, false, errAway)
			}
			return nil
		}
		g := s.q.put(task1, "fw2", p.member)
		s.start()
		s.finish()
		if r := s.q.only(g.Job); r.Kind != jobs.KindDefer || !strings.Contains(r.Error, "fw1 could not be marked") {
			t.Errorf("got %+v", r)
		}
		if len(p.told) > 0 || len(s.hosts.started()) > 0 {
			t.Errorf("told %q, started %q", p.told, s.hosts.started())
		}
	})
}

// The marker that an ended job left behind does not hinder the next job.
func TestTheMarkerOfAnEndedJobIsReplaced(t *testing.T) {
	left := remote.Marker{Job: string(otherJob("fw3")), Host: "fw3", Token: 5, Until: 9e17}
	for name, fate := range map[string]jobs.Standing{
		"failed":              {State: jobs.Ended, Outcome: jobs.Failed},
		"unknown and cleared": {State: jobs.Ended, Outcome: jobs.Unknown, Cleared: 6},
		"forgotten, cleared":  {Cleared: 6},
	} {
		t.Run(name, func(t *testing.T) {
			inPair(t, func(t *testing.T, s *stand, p *pair) {
				p.marked["fw3"] = left
				p.fates[otherJob("fw3")] = fate
				g := s.q.put(task1, "fw2", p.member)
				s.start()
				s.finish()
				if r := s.q.only(g.Job); r.Outcome != jobs.Succeeded || len(p.marked) > 0 {
					t.Errorf("got %+v, marked %v", r, p.marked)
				}
			})
		})
	}
}

// Nobody knows the state of the host, so no other member may be disturbed.
func TestTheMarkersOfAJobThatEndsUnknownStay(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		s.hosts.run = func(context.Context, fleet.Host, remote.Command) (remote.Result, error) {
			return remote.Result{ExitCode: -1}, fault(remote.KindGone, true, errors.New("killed"))
		}
		g := s.q.put(task1, "fw2", p.member)
		s.start()
		s.finish()
		if r := s.q.only(g.Job); r.Outcome != jobs.Unknown || len(p.marked) != 3 {
			t.Errorf("got %+v, marked %v", r, p.marked)
		}
	})
}

func TestTheMarkersOfAJobThatIsTriedAgainStay(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		s.hosts.run = func(context.Context, fleet.Host, remote.Command) (remote.Result, error) {
			return remote.Result{ExitCode: -1}, fault(remote.KindLost, true, errors.New("cut"))
		}
		g := s.q.put(task1, "fw2", p.member)
		s.start()
		s.finish()
		r := s.q.only(g.Job)
		if r.Kind != jobs.KindWait || len(p.marked) != 3 || verdict.Recall(r.Saved).Marked == 0 {
			t.Errorf("got %+v, marked %v", r, p.marked)
		}
	})
}

// A member without a fence cannot carry a marker, so nobody connects to it.
func TestAMemberWithoutAFenceIsNotCalled(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		p.none = "fw1"
		g := s.q.put(task1, "fw2", p.member)
		s.start()
		s.finish()
		if r := s.q.only(g.Job); r.Outcome != jobs.Succeeded || len(p.told) != 4 || s.hosts.most != 2 {
			t.Errorf("got %+v, told %q, %d connections", r, p.told, s.hosts.most)
		}
	})
}

// A job writes markers that are half a day old again. If a member is away then, the job still
// continues, because its host would stay half way.
func TestMarkersAreRenewed(t *testing.T) {
	for hours, told := range map[int64]int{1: 0, 13: 2} {
		t.Run(fmt.Sprint(hours), func(t *testing.T) {
			inPair(t, func(t *testing.T, s *stand, p *pair) {
				s.hosts.run = func(context.Context, fleet.Host, remote.Command) (remote.Result, error) {
					return remote.Result{ExitCode: -1}, fault(remote.KindGone, true, errors.New("killed"))
				}
				p.away["fw1"] = true
				s.q.put(task1, "fw2", p.member, func(g *jobs.Grant) {
					g.Saved = verdict.Memory{Marked: g.Token - jobs.Token(hours*3600e6)}.String()
				})
				s.start()
				s.finish()
				if len(p.told) != told || len(s.hosts.started()) != 1 {
					t.Errorf("told %q, started %q", p.told, s.hosts.started())
				}
			})
		})
	}
}

// A member on which a step is at work can be reached, so the text does not advise to take it out of
// the group.
func TestAMemberAtWorkIsAskedAgain(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		p.busy = "fw3"
		g := s.q.put(task1, "fw2", p.member)
		s.start()
		s.finish()
		r := s.q.only(g.Job)
		if r.Kind != jobs.KindDefer || r.Delay != verdict.DoubtDelay || len(s.hosts.started()) > 0 {
			t.Errorf("got %+v", r)
		}
		if !strings.Contains(r.Error, "fw3 could not be marked now, muster will try again: ") ||
			!strings.Contains(r.Error, "a step is at work on it") || strings.Contains(r.Error, "out of the group") {
			t.Errorf("it says %q", r.Error)
		}
	})
}
