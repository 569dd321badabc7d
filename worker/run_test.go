package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// one runs one attempt at a job, and returns its result.
func (s *stand) one(change ...func(*jobs.Grant)) jobs.Result {
	s.t.Helper()
	g := s.q.grant(task1, "fw1", change...)
	s.start(g)
	s.finish()
	return s.q.only(g.Job)
}

func TestStepsRunInOrderEachAfterACheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.specs[task1] = spec(t, shell("one"), shell("two"), shell("three"))
		s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			r, err := works(ctx, 15*time.Second)
			r.Output.Head = []byte(c.Shell + " done\n")
			return r, err
		}
		got := s.one(func(g *jobs.Grant) { g.Saved = `{"may_have_run":true}` })
		want := jobs.Result{Job: "0000000001:fw1", Token: 1, Kind: jobs.KindEnd, Outcome: jobs.Succeeded,
			ExitCode: new(int), Step: 2, Saved: "{}",
			Said: jobs.Said{Output: []byte("== step 1 of 3: one ==\ndo one done\n" +
				"== step 2 of 3: two ==\ndo two done\n== step 3 of 3: three ==\ndo three done\n")}}
		if diff := cmp.Diff(want, got, timeless); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		asked := []jobs.Checkpoint{
			{Job: want.Job, Token: 1, Step: 1, Saved: want.Saved},
			{Job: want.Job, Token: 1, Step: 2, Saved: want.Saved},
		}
		if diff := cmp.Diff(asked, s.q.asked); diff != "" {
			t.Errorf("checkpoints (-want +got):\n%s", diff)
		}
	})
}

func TestAJobContinuesAtItsStep(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.specs[task1] = spec(t, shell("one"), shell("two"), shell("three"))
		got := s.one(func(g *jobs.Grant) { g.Mode, g.Step, g.Attempt = jobs.ModeContinue, 1, 2 })
		if got.Outcome != jobs.Succeeded {
			t.Errorf("%+v", got)
		}
		if diff := cmp.Diff([]string{"fw1: do two", "fw1: do three"}, s.hosts.started()); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
		if len(s.q.asked) != 1 || s.q.asked[0].Step != 2 {
			t.Errorf("checkpoints %+v, want one before the last step", s.q.asked)
		}
	})
}

func TestTheAnswerToACheckpointIsObeyed(t *testing.T) {
	t.Run("stop gives the job back behind what it did", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *stand) {
			s.q.specs[task1] = spec(t, shell("one"), shell("two"))
			s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) { return jobs.Stop, nil }
			got := s.one()
			if got.Kind != jobs.KindWait || got.Step != 1 || got.Delay != 0 || got.Release ||
				got.Error != "stopped before step 2 (two)" {
				t.Errorf("%+v", got)
			}
			if n := len(s.hosts.started()); n != 1 {
				t.Errorf("%d steps were started", n)
			}
		})
	})
	t.Run("stale says nothing", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *stand) {
			s.q.specs[task1] = spec(t, shell("one"), shell("two"))
			s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) { return jobs.Stale, nil }
			g := s.q.grant(task1, "fw1")
			s.q.put(task1, "fw2")
			s.start(g)
			s.finish()
			if got := s.q.resultsOf(g.Job); len(got) != 0 {
				t.Errorf("said %+v", got)
			}
			// The other job gets the slot.
			if n := len(s.hosts.started()); n != 2 {
				t.Errorf("%d steps were started, want the first of both jobs", n)
			}
		})
	})
	t.Run("a go after some tries", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *stand) {
			s.q.specs[task1] = spec(t, shell("one"), shell("two"))
			s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) {
				if len(s.q.asked) < 10 {
					return "", errAway
				}
				return jobs.Go, nil
			}
			if got := s.one(); got.Outcome != jobs.Succeeded {
				t.Errorf("%+v", got)
			}
		})
	})
}

func TestAGoMovesTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		steps := make([]scripts.Step, 10)
		for i := range steps {
			steps[i] = shell(fmt.Sprintf("s%d", i))
		}
		s.q.specs[task1] = spec(t, steps...)
		s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			if c.Bound != stepTime {
				t.Errorf("bound = %s, want all of the step's timeout", c.Bound)
			}
			return works(ctx, 19*time.Second) // 190 s altogether, and the lock holds for a minute
		}
		if got := s.one(); got.Outcome != jobs.Succeeded {
			t.Errorf("%+v", got)
		}
	})
}

func TestOnlyAFreshTakeIsAGo(t *testing.T) {
	for after, asks := range map[time.Duration]int{4 * time.Second: 0, 6 * time.Second: 1} {
		t.Run(after.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.hosts.dial = func(ctx context.Context, _ fleet.Host) error {
					_, err := works(ctx, after)
					return err
				}
				if got := s.one(); got.Outcome != jobs.Succeeded || len(s.q.asked) != asks {
					t.Errorf("%d checkpoints, want %d; %+v", len(s.q.asked), asks, got)
				}
			})
		})
	}
}

func TestAfterSlowConnectingTheLockIsRenewed(t *testing.T) {
	for _, tt := range []struct {
		name    string
		verdict jobs.Verdict
		err     error
		kind    jobs.Kind
	}{
		{"go", jobs.Go, nil, jobs.KindEnd},
		{"stop", jobs.Stop, nil, jobs.KindBack},
		{"no answer", "", errAway, jobs.KindBack},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) { return tt.verdict, tt.err }
				s.hosts.dial = func(ctx context.Context, _ fleet.Host) error {
					_, err := works(ctx, 29*time.Second+500*time.Millisecond)
					return err
				}
				s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					if c.Bound != stepTime {
						t.Errorf("bound = %s, want all of the step's timeout", c.Bound)
					}
					return works(ctx, stepTime)
				}
				if got := s.one(); got.Kind != tt.kind {
					t.Errorf("%+v, want %s", got, tt.kind)
				}
				if n := len(s.hosts.started()); (n == 1) != (tt.verdict == jobs.Go) {
					t.Errorf("%d steps were started", n)
				}
			})
		})
	}
}

func TestConnectingHasItsOwnBound(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.hosts.dial = func(ctx context.Context, _ fleet.Host) error {
			<-ctx.Done()
			return fault(remote.KindCancelled, false, ctx.Err())
		}
		began := time.Now()
		got := s.one()
		if took := time.Since(began).Round(time.Second); took != jobs.ConnectAllowance {
			t.Errorf("took %s, want %s", took, jobs.ConnectAllowance)
		}
		if got.Kind != jobs.KindRetry || got.KeepLock || got.Delay != jobs.DefaultPolicy().Delay {
			t.Errorf("%+v, want a plain retry", got)
		}
	})
}

func TestAStepThatNeverEndsIsStoppedAtTheDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.hosts.run = func(ctx context.Context, _ fleet.Host, _ remote.Command) (remote.Result, error) {
			return works(ctx, time.Hour)
		}
		began := time.Now()
		got := s.one()
		want := verdict.Deadline(0, attemptTime)
		if took := time.Since(began).Round(100 * time.Millisecond); took != want {
			t.Errorf("took %s, want %s", took, want)
		}
		if got.Outcome != jobs.Unknown || !got.KeepLock || !strings.Contains(got.Error, "deadline") {
			t.Errorf("%+v, want unknown", got)
		}
	})
}

func TestUnfitJobs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		steps  []scripts.Step
		broken string // replaces the runbook
		change func(*jobs.Grant)
		want   jobs.Result
	}{
		{
			name:   "unknown host",
			change: func(g *jobs.Grant) { g.Host = nil },
			want:   end(jobs.Failed, "host is not in inventory version v7"),
		},
		{
			name:   "unreadable runbook",
			broken: `{"steps":[{"weather":"x"}]}`,
			want: end(jobs.Failed, `the runbook of task 0000000001 cannot be read: frozen runbook: json: `+
				`unknown field "weather": was it made by another version of muster?`),
		},
		{
			name:   "no steps",
			broken: `{}`,
			want:   end(jobs.Failed, "the runbook of task 0000000001 has no steps"),
		},
		{
			name:   "a step that is not there",
			change: func(g *jobs.Grant) { g.Step = 1 },
			want: end(jobs.Failed, "the job is at step 2 of a runbook with 1 steps: a mistake in muster",
				atStep(1)),
		},
		{
			name:   "no time for anything",
			change: func(g *jobs.Grant) { g.Timeout = 10 * time.Second },
			want:   end(jobs.Failed, "the task allows an attempt 10s, which is too short to start a step"),
		},
		{
			name:  "a value is missing",
			steps: []scripts.Step{{Name: "x", Kind: scripts.KindRun, Run: "echo {{host.label.site}}", Timeout: stepTime}},
			want: end(jobs.Failed, `runbook test, step "x": {{host.label.site}}: host fw1 has no label "site": `+
				`give it one in the inventory, or leave the host out`, class(jobs.ClassUser)),
		},
		{
			name:   "lost",
			change: lostAt(0),
			want: end(jobs.Unknown, "the worker on node n9/2 died with it, and it is not known whether "+
				"step 1 ran", keepLock),
		},
		{
			name:   "lost and repeatable",
			steps:  []scripts.Step{repeatable("x")},
			change: lostAt(0),
			want: jobs.Result{Kind: jobs.KindRetry, Delay: 17 * time.Second, KeepLock: true,
				Saved: `{"may_have_run":true}`,
				Error: "the worker on node n9/2 died with it, and it is not known whether step 1 ran"},
		},
		{
			name:   "lost at a step that may not run twice",
			steps:  []scripts.Step{repeatable("x"), shell("y")},
			change: lostAt(1),
			want: end(jobs.Unknown, "the worker on node n9/2 died with it, and it is not known whether "+
				"step 2 ran", keepLock, atStep(1)),
		},
		{
			name:   "lost on a host that is gone",
			steps:  []scripts.Step{repeatable("x")},
			change: func(g *jobs.Grant) { lostAt(0)(g); g.Host = nil },
			want: end(jobs.Unknown, "the worker on node n9/2 died with it, and it is not known whether "+
				"step 1 ran", keepLock),
		},
		{
			name:   "lost with a runbook that cannot be read",
			broken: `[]`,
			change: lostAt(0),
			want: end(jobs.Unknown, "the worker on node n9/2 died with it, and it is not known whether "+
				"step 1 ran", keepLock),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.hosts.dial = func(context.Context, fleet.Host) error {
					if tt.steps == nil || tt.want.Class != jobs.ClassUser {
						t.Error("it went to the host")
					}
					return nil
				}
				if tt.steps == nil {
					tt.steps = []scripts.Step{shell("x")}
				}
				if tt.change == nil {
					tt.change = func(*jobs.Grant) {}
				}
				sp := spec(t, tt.steps...)
				if tt.broken != "" {
					sp.Action = []byte(tt.broken)
				}
				s.q.specs[task1] = sp
				got := s.one(tt.change)
				tt.want.Job, tt.want.Token = "0000000001:fw1", 1
				if diff := cmp.Diff(tt.want, got, timeless); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
				if n := len(s.hosts.started()); n != 0 {
					t.Errorf("%d steps were started", n)
				}
			})
		})
	}
}

func lostAt(step int) func(*jobs.Grant) {
	return func(g *jobs.Grant) {
		g.Mode, g.Attempt, g.Step = jobs.ModeLost, 2, step
		g.LostNode, g.Bound = "n9/2", 17*time.Second
	}
}

func end(o jobs.Outcome, text string, more ...func(*jobs.Result)) jobs.Result {
	r := jobs.Result{Kind: jobs.KindEnd, Outcome: o, Class: jobs.ClassOperator, Error: text}
	for _, m := range more {
		m(&r)
	}
	return r
}

func keepLock(r *jobs.Result)                 { r.KeepLock = true }
func atStep(n int) func(*jobs.Result)         { return func(r *jobs.Result) { r.Step = n } }
func class(c jobs.Class) func(r *jobs.Result) { return func(r *jobs.Result) { r.Class = c } }

func TestAPanicCostsOneJobOnly(t *testing.T) {
	for _, tt := range []struct {
		name string
		trap func(s *stand)
		kind jobs.Kind
		out  jobs.Outcome
	}{
		{"before a step", func(s *stand) {
			s.hosts.dial = func(_ context.Context, h fleet.Host) error { return bang(h) }
		}, jobs.KindRetry, ""},
		{"in a step", func(s *stand) {
			s.hosts.run = func(ctx context.Context, h fleet.Host, _ remote.Command) (remote.Result, error) {
				if err := bang(h); err != nil {
					return remote.Result{}, err
				}
				return works(ctx, 3*time.Second)
			}
		}, jobs.KindEnd, jobs.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				var log bytes.Buffer
				s.log = hclog.New(&hclog.LoggerOptions{Output: &log})
				s.cfg.Slots = 2
				tt.trap(s)
				bad, good := s.q.grant(task1, "bad"), s.q.grant(task1, "good")
				s.start(bad, good)
				s.finish()
				got := s.q.only(bad.Job)
				if got.Kind != tt.kind || got.Outcome != tt.out || got.KeepLock != (tt.out == jobs.Unknown) {
					t.Errorf("%+v, want %s %s", got, tt.kind, tt.out)
				}
				if got := s.q.only(good.Job); got.Outcome != jobs.Succeeded {
					t.Errorf("the other job: %+v", got)
				}
				if !strings.Contains(log.String(), "run_test.go") || !strings.Contains(log.String(), "bang") {
					t.Errorf("the log has no stack:\n%s", &log)
				}
			})
		})
	}
}

func bang(h fleet.Host) error {
	if h.Name == "bad" {
		panic("bang")
	}
	return nil
}

func TestUploads(t *testing.T) {
	content := []byte("table inet filter\n")
	for _, tt := range []struct {
		name string
		err  error
		want jobs.Result
	}{
		{name: "done", want: end(jobs.Succeeded, "", class(jobs.ClassNone))},
		{
			name: "no room on the disk",
			err: &remote.Error{Op: "upload", Kind: remote.KindFailed, Sent: true,
				Err: errors.New("/etc/x: exit 1: no space left on device")},
			want: end(jobs.Failed, "/etc/x: exit 1: no space left on device"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.q.specs[task1] = spec(t, scripts.Step{Name: "put", Kind: scripts.KindUpload, Timeout: stepTime,
					Upload: &scripts.UploadSpec{Content: string(content), To: "/etc/{{host.name}}", Mode: 0o640}})
				s.hosts.upload = func(_ context.Context, _ fleet.Host, u remote.Upload) error {
					got, err := io.ReadAll(u.Content)
					if err != nil || !bytes.Equal(got, content) || u.Size != int64(len(content)) ||
						u.SHA256 != sha256.Sum256(content) {
						t.Errorf("content %q, size %d, sum %x, error %v", got, u.Size, u.SHA256, err)
					}
					if u.Path != "/etc/fw1" || u.Mode != 0o640 || u.Bound != stepTime {
						t.Errorf("path %s, mode %o, bound %s", u.Path, u.Mode, u.Bound)
					}
					return tt.err
				}
				got := s.one()
				tt.want.Job, tt.want.Token = "0000000001:fw1", 1
				if diff := cmp.Diff(tt.want, got, timeless); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestTheOutputOfFailedStepsIsKept(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.hosts.run = func(context.Context, fleet.Host, remote.Command) (remote.Result, error) {
			return remote.Result{ExitCode: -1, Output: remote.Output{Head: []byte("half a li")}},
				fault(remote.KindLost, true, errors.New("the connection ended"))
		}
		got := s.one()
		if got.Outcome != jobs.Unknown || string(got.Output) != "half a li" {
			t.Errorf("%+v", got)
		}
	})
}
