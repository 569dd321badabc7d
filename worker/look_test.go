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

// lookBook returns a runbook with a step that is tried again, one with an on_fail, one that may be
// skipped, and a last one.
func lookBook(skip bool) string {
	when := "['{{host.name}} == fw1']"
	if skip {
		when = "['{{host.name}} == other']"
	}
	return "name: a\ntimeout: 30s\nsteps:\n" +
		"  - {name: one, run: x, retry: {tries: 3, delay: 1s}, classes: [{exit: 75, class: transient}]}\n" +
		"  - {name: two, run: y, on_fail: [{name: undo, run: z}]}\n" +
		"  - {name: three, run: y, when: " + when + "}\n  - {name: four, run: y, when: " + when + "}\n"
}

// The record of the host says how a job ended whose outcome is unknown. The worker begins and stops
// nothing, and reports no result. A step without a record does not count as done.
func TestAHostIsAskedHowAJobEnded(t *testing.T) {
	ok := func(code int) func(remote.Command) (remote.Result, error) {
		return func(c remote.Command) (remote.Result, error) {
			c.Attached(17)
			return remote.Result{ExitCode: code, Attached: true}, nil
		}
	}
	fails := func(k remote.Kind, sent bool) func(remote.Command) (remote.Result, error) {
		return func(remote.Command) (remote.Result, error) {
			return remote.Result{ExitCode: -1}, fault(k, sent, fmt.Errorf("the host says %s", k))
		}
	}
	for _, tt := range []struct {
		name   string
		mode   jobs.Mode
		step   int
		skip   bool // skips the steps after two
		run    func(remote.Command) (remote.Result, error)
		answer jobs.Answer
		ends   jobs.Outcome
		words  string
		over   bool
	}{
		{"the last step ended well", jobs.ModeAsk, 3, false, ok(0), jobs.AnswerSettled, jobs.Succeeded, "succeeded", true},
		{"and others were left", jobs.ModeAsk, 1, false, ok(0), jobs.AnswerSettled, jobs.Failed,
			"step 2 (two) ended well, and nothing was done after it: step 3 (three) never began", true},
		{"which would be skipped", jobs.ModeAsk, 1, true, ok(0), jobs.AnswerSettled, jobs.Succeeded, "succeeded", true},
		{"it failed", jobs.ModeAsk, 3, false, ok(3), jobs.AnswerSettled, jobs.Failed, "exit 3", true},
		{"it would have been tried again", jobs.ModeAsk, 0, false, ok(75), jobs.AnswerSettled, jobs.Failed,
			"it was not tried again", true},
		{"its on_fail never ran", jobs.ModeAsk, 1, false, ok(3), jobs.AnswerSettled, jobs.Failed,
			"exit 3; its on_fail never ran", true},
		{"it ran over its bound", jobs.ModePeek, 3, false, fails(remote.KindTimeout, true), jobs.AnswerSettled,
			jobs.Timeout, "timeout", true},
		{"it was stopped", jobs.ModeAsk, 3, false, fails(remote.KindStopped, true), jobs.AnswerSettled,
			jobs.Cancelled, "stopped on the host", true},
		{"it never began", jobs.ModeAsk, 0, false, fails(remote.KindNever, false), jobs.AnswerSettled, jobs.Failed,
			"step 1 (one) never began: nothing of the job ran", true},
		{"it never began so far", jobs.ModePeek, 0, false, fails(remote.KindNever, false), jobs.AnswerBusy, "",
			"another job has the host", false},
		{"it runs", jobs.ModeAsk, 3, false, fails(remote.KindWork, false), jobs.AnswerRunning, "", "for at most", false},
		{"it cannot be killed", jobs.ModeAsk, 3, false, fails(remote.KindRunning, true), jobs.AnswerRunning, "", "", false},
		{"nothing of it is alive", jobs.ModeAsk, 3, false, fails(remote.KindGone, true), jobs.AnswerGone, "", "", true},
		{"no record", jobs.ModeAsk, 3, false, fails(remote.KindUntold, false), jobs.AnswerUntold, "", "", false},
		{"no folder", jobs.ModeAsk, 3, false, fails(remote.KindRecord, false), jobs.AnswerUntold, "", "", false},
		{"another job", jobs.ModePeek, 3, false, fails(remote.KindBusy, false), jobs.AnswerBusy, "", "ask again", false},
		{"cut off", jobs.ModeAsk, 3, false, fails(remote.KindLost, true), jobs.AnswerUnreachable, "", "", false},
		{"strange words", jobs.ModeAsk, 3, false, fails(remote.KindMute, true), jobs.AnswerUnreachable, "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads(lookBook(tt.skip))
				s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					r := c.Record
					if r == nil || !r.Look || !r.Glance || !r.Again || r.Peek != (tt.mode == jobs.ModePeek) ||
						c.Shell != ":" || c.Stop != nil || r.Token != 99 || r.Step != tt.step {
						t.Errorf("the host is asked for %+v, %+v", c, r)
					}
					return tt.run(c)
				}
				told := s.look(tt.mode, tt.step)
				if len(told) != 1 || told[0].Answer != tt.answer || told[0].Over != tt.over ||
					!strings.Contains(told[0].Words, tt.words) || (told[0].End != nil) != (tt.ends != "") {
					t.Fatalf("told %+v", told)
				}
				if end := told[0].End; end != nil && end.Outcome != tt.ends {
					t.Errorf("it ended %+v, want %s", end, tt.ends)
				}
			})
		})
	}
}

// look lets a worker carry out an order, and returns its answers to the queue.
func (s *stand) look(mode jobs.Mode, step int) (told []jobs.Reading) {
	s.t.Helper()
	s.answer = func(_ context.Context, zone string, r jobs.Reading) error {
		if zone != "z" || r.Token != 99 {
			s.t.Errorf("told in zone %q: %+v", zone, r)
		}
		told = append(told, r)
		return nil
	}
	g := s.q.grant(task1, "fw1", func(g *jobs.Grant) {
		g.Mode, g.Step, g.Token, g.Timeout = mode, step, 99, time.Minute
		g.Host.Fence = fleet.FenceRequired
	})
	s.start(g)
	s.finish()
	if list := s.q.resultsOf(g.Job); len(list) > 0 {
		s.t.Errorf("results %+v", list)
	}
	return told
}

// The answer says that a host cannot be reached, or keeps no records. If the queue does not take
// the answer, the worker continues.
func TestAHostThatCannotBeAsked(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.hosts.dial = func(context.Context, fleet.Host) error {
			return fault(remote.KindUnreachable, false, errors.New("no route to host"))
		}
		told := s.look(jobs.ModeAsk, 0)
		if len(told) != 1 || told[0].Answer != jobs.AnswerUnreachable || told[0].Over ||
			!strings.Contains(told[0].Words, "no route to host") {
			t.Errorf("told %+v", told)
		}
	})
}
