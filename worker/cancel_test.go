package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

var byBob = &stopOrder{"bob: wrong ruleset"}

// Whatever goes wrong with a cancelled job, and however many tries are left: it
// ends, and it ends truly.
func TestJudgeWhatWasCancelled(t *testing.T) {
	t.Parallel()
	const (
		notBegun = "end cancelled: bob: wrong ruleset; stopped before step 1"
		before   = "end cancelled: bob: wrong ruleset; stopped before step 1 (s)"
		unknown  = "end unknown operator keep: cancel requested, not known whether it still runs: " +
			"bob: wrong ruleset; words"
	)
	for _, tt := range []struct {
		kind   remote.Kind
		sent   bool
		action scripts.Action
		want   string
	}{
		{remote.KindStopped, true, once, "end cancelled: bob: wrong ruleset; stopped on the host"},
		{remote.KindStopped, true, twice, "end cancelled: bob: wrong ruleset; stopped on the host"},
		{remote.KindRunning, true, once,
			"end unknown operator keep: cancel requested, still running: bob: wrong ruleset; words"},
		{remote.KindRunning, true, twice,
			"end unknown operator keep: cancel requested, still running: bob: wrong ruleset; words"},
		{remote.KindLost, true, once, unknown},
		{remote.KindLost, true, twice, unknown},
		{remote.KindCancelled, true, twice, unknown},
		{remote.KindUnreachable, true, twice, unknown},
		{"of tomorrow", true, twice, unknown},
		{"", true, once, unknown},
		{remote.KindTimeout, true, twice, "end timeout: words"},
		{remote.KindFailed, true, twice, "end failed operator: words"},
		{remote.KindNode, true, twice, "end failed operator: words"},
		{remote.KindInvalid, true, twice, "end failed user: words"},

		{remote.KindStopped, false, once, before},
		{remote.KindCancelled, false, once, before},
		{remote.KindThrottled, false, twice, before},
		{remote.KindUnreachable, false, connecting, notBegun},
		{remote.KindCancelled, false, connecting, notBegun},
		{"", false, connecting, notBegun},
		{remote.KindAuth, false, connecting, "end failed operator: connect 127.0.0.1:22: words"},
		{remote.KindHostKey, false, connecting, "end failed operator: connect 127.0.0.1:22: words"},
	} {
		for _, tries := range []int{0, 9} {
			err := fault(tt.kind, tt.sent, errors.New("words"))
			if tt.kind == "" {
				err = errors.New("words") // of nobody we know
			}
			f := facts{grant: jobs.Grant{Tries: tries}, policy: jobs.DefaultPolicy(), steps: 1, order: byBob,
				action: tt.action, result: remote.Result{ExitCode: -1}, err: err}
			r, goOn := judge(f, 0.8)
			if got := verdict(r, goOn) + ": " + r.Error; got != tt.want || r.ExitCode != nil {
				t.Errorf("%s, sent %t, %+v:\n got %s\nwant %s", tt.kind, tt.sent, tt.action, got, tt.want)
			}
		}
	}
}

func TestJudgeWhatWasCancelledInDetail(t *testing.T) {
	t.Parallel()
	stopped := fault(remote.KindStopped, true, errors.New("words"))
	code := 143
	for _, tt := range []struct {
		name string
		f    facts
		want jobs.Result
		goOn bool
	}{
		{"the exit code is said",
			facts{steps: 1, action: once, err: stopped, result: remote.Result{ExitCode: code}},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Cancelled, ExitCode: &code,
				Error: "bob: wrong ruleset; stopped on the host"}, false},
		{"a step of many",
			facts{steps: 3, step: 1, action: once, err: stopped, result: remote.Result{ExitCode: -1}},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Cancelled, Step: 1,
				Error: "bob: wrong ruleset; stopped on the host in step 2 (s)"}, false},
		{"an upload has no exit code",
			facts{steps: 1, action: scripts.Action{Kind: scripts.KindUpload, Name: "u"}, err: stopped},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Cancelled,
				Error: "bob: wrong ruleset; stopped on the host"}, false},
		{"it ended by itself", facts{steps: 1, action: once},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Succeeded, ExitCode: new(int)}, false},
		{"it ended by itself, and there are more steps", facts{steps: 2, action: once}, jobs.Result{}, true},
		{"its deadline came first", facts{steps: 2, action: once, cause: errOverdue,
			err: fault(remote.KindCancelled, true, errors.New("words"))},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Unknown, Class: jobs.ClassOperator, KeepLock: true,
				Error: "cancel requested, not known whether it still runs: bob: wrong ruleset; " +
					"step 1 (s): its deadline was reached"}, false},
		{"an earlier attempt may have run", facts{steps: 1, action: once,
			grant: jobs.Grant{Saved: mayHave}, err: fault(remote.KindStopped, false, errors.New("words"))},
			jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Unknown, Class: jobs.ClassOperator, Saved: mayHave,
				Error: "bob: wrong ruleset; stopped before step 1 (s); an earlier attempt may have started the step"},
			false},
	} {
		tt.f.order = byBob
		got, goOn := judge(tt.f, 0)
		if diff := cmp.Diff(tt.want, got); diff != "" || goOn != tt.goOn {
			t.Errorf("%s: go on = %t, (-want +got):\n%s", tt.name, goOn, diff)
		}
	}
}

// However much an operator has to say, what became of the job is not cut off.
func TestALongNoteLeavesRoom(t *testing.T) {
	t.Parallel()
	f := facts{steps: 1, action: once, order: &stopOrder{"bob: " + strings.Repeat("why ö", 100)},
		err: fault(remote.KindStopped, true, errors.New("words"))}
	r, _ := judge(f, 0)
	if !strings.HasPrefix(r.Error, "bob: why") || !strings.HasSuffix(r.Error, "…; stopped on the host") {
		t.Errorf("%q", r.Error)
	}
	f.order = &stopOrder{}
	if r, _ := judge(f, 0); r.Error != "cancelled; stopped on the host" {
		t.Errorf("without a note: %q", r.Error)
	}
}

// cancel says from some time on that a job is to be stopped.
func (s *stand) cancel(id jobs.ID, after time.Duration) {
	began := time.Now()
	s.q.stops = func([]jobs.ID) (map[jobs.ID]string, error) {
		if time.Since(began) < after {
			return nil, nil
		}
		return map[jobs.ID]string{id: "bob"}, nil
	}
}

// obeys is a command that takes so long, and can be stopped in 50 ms.
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

// Without an answer nothing is stopped, and it is asked again.
func TestStopsWithoutAnAnswer(t *testing.T) {
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

// A question that gets no answer holds up neither the end nor the bye.
func TestAQuestionForStopsDoesNotHoldUpTheEnd(t *testing.T) {
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
