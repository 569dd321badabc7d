package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// TestJudgeOfAHostWithRecords holds all that such a host can answer against how the attempt
// came to ask: as the first, after a lost worker, or after an attempt that heard no end.
func TestJudgeOfAHostWithRecords(t *testing.T) {
	t.Parallel()
	const (
		wait, keep, operator = "wait 5s", "end unknown operator keep", "end failed operator"
		unknown              = "end unknown operator"
	)
	lost := jobs.Grant{Mode: jobs.ModeLost, Bound: 20 * time.Second, Attempt: 2}
	heard := jobs.Grant{Mode: jobs.ModeContinue, Saved: `{"may_have_run":true,"asked":1}`, Attempt: 2}
	last := jobs.Grant{Mode: jobs.ModeContinue, Saved: `{"may_have_run":true,"asked":2}`, Tries: 2}
	for _, tt := range []struct {
		kind                     remote.Kind
		sent                     bool
		first, lost, heard, last string
	}{
		{remote.KindLost, true, wait, wait, wait, keep},
		{remote.KindCancelled, true, wait, wait, wait, keep},
		{remote.KindGone, true, unknown, unknown, unknown, unknown},
		{remote.KindMute, true, keep, keep, keep, keep},
		{remote.KindRunning, true, keep, keep, keep, keep},
		{remote.KindTimeout, true, "end timeout", "end timeout", "end timeout", "end timeout"},
		{remote.KindStopped, true, "end cancelled", "end cancelled", "end cancelled", "end cancelled"},
		{remote.KindRecord, false, operator, keep, unknown, unknown},
		{remote.KindStale, false, operator, keep, unknown, unknown},
		{remote.KindBusy, false, "retry 8s", "retry 8s keep", "retry 8s", unknown},
		{remote.KindUntold, false, operator, keep, unknown, unknown},
		{remote.KindNever, false, "back", "back", "back", "back"},
		{remote.KindUnreachable, false, "retry 5s", "retry 5s keep", "retry 5s", unknown},
	} {
		for i, g := range []jobs.Grant{{Mode: jobs.ModeFresh}, lost, heard, last} {
			want := []string{tt.first, tt.lost, tt.heard, tt.last}[i]
			g.Host = &fleet.Host{Name: "fw1", Fence: fleet.FenceAuto}
			err := &remote.Error{Op: "run", Kind: tt.kind, Sent: tt.sent, Wait: 8 * time.Second, Err: errors.New("words")}
			f := facts{grant: g, policy: jobs.DefaultPolicy(), steps: 1, action: once, err: err, busy: 12 * time.Second}
			r, goOn := judge(f, 0.5)
			if got := verdict(r, goOn); got != want {
				t.Errorf("%s, %s %s: %s, want %s", tt.kind, g.Mode, g.Saved, got, want)
			}
			if again := r.Kind == jobs.KindWait || g.Mode == jobs.ModeLost && r.Kind == jobs.KindRetry; again &&
				!remembered(r.Saved) {
				t.Errorf("%s, %s: it is forgotten that it may have run: %+v", tt.kind, g.Mode, r)
			}
		}
	}
}

// Where the greeting said that there is no record, nobody waits for one to tell.
func TestAnUnfencedHostIsNotAskedLater(t *testing.T) {
	t.Parallel()
	f := facts{policy: jobs.DefaultPolicy(), steps: 1, action: once,
		grant:  jobs.Grant{Host: &fleet.Host{Fence: fleet.FenceAuto}},
		result: remote.Result{Unfenced: "flock"}, err: fault(remote.KindLost, true, errors.New("words"))}
	r, goOn := judge(f, 0)
	if got := verdict(r, goOn); got != "end unknown operator keep" || r.Note != "unfenced: it lacks flock" {
		t.Errorf("%s, note %q", got, r.Note)
	}
}

// After a reboot nothing of a step is alive, and its host says so: nobody waits for its bound
// before it is done again, and the host is locked for nobody.
func TestWhatAHostCallsDeadIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind   remote.Kind
		action scripts.Action
		want   string
	}{
		{remote.KindGone, twice, "retry 5s"},
		{remote.KindGone, once, "end unknown operator"},
		{remote.KindMute, twice, "retry 1h0m0s keep"},
		{remote.KindMute, once, "end unknown operator keep"},
	} {
		for _, mode := range []jobs.Mode{jobs.ModeFresh, jobs.ModeLost} {
			f := facts{policy: jobs.DefaultPolicy(), steps: 1, action: tt.action, busy: time.Hour,
				grant: jobs.Grant{Mode: mode, Bound: time.Hour, Host: &fleet.Host{Fence: fleet.FenceAuto}},
				err:   fault(tt.kind, true, errors.New("words"))}
			r, goOn := judge(f, 0)
			if got := verdict(r, goOn); got != tt.want || r.Kind == jobs.KindRetry && !remembered(r.Saved) {
				t.Errorf("%s, %s: %s, kept %s; want %s", tt.kind, mode, got, r.Saved, tt.want)
			}
		}
	}
}

func fenced(change func(*jobs.Grant)) func(*jobs.Grant) {
	return func(g *jobs.Grant) {
		h := *g.Host
		h.Fence = fleet.FenceRequired
		g.Host = &h
		g.Token = 7_000_000_000
		change(g)
	}
}

// What a host can show is held against when the task was committed, by the clock of Redis: that
// of the server may be wrong by ten minutes, in which the first rollout of a fleet lies.
func TestALostStepIsHeldAgainstTheCommitOfItsTask(t *testing.T) {
	const created, commit = jobs.Micros(3_000_000_000), jobs.Micros(3_050_000_000)
	for _, tt := range []struct {
		name  string
		knows func(context.Context, string, jobs.TaskID) (jobs.Micros, error)
		want  jobs.Micros
	}{
		{"known", func(context.Context, string, jobs.TaskID) (jobs.Micros, error) { return commit, nil },
			commit - 60_000_000},
		{"not known", func(context.Context, string, jobs.TaskID) (jobs.Micros, error) {
			return 0, errors.New("Redis is away")
		}, created - 600_000_000},
		{"nobody to ask", nil, created - 600_000_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				var since int64
				s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					since = c.Record.Since
					return remote.Result{}, nil
				}
				s.committed = tt.knows
				sp := spec(t, shell("x"))
				sp.Created = created
				s.q.specs[task1] = sp
				if s.one(fenced(lostAt(0))); since != int64(tt.want) {
					t.Errorf("%s: no attempt is older than %d, want %d", tt.name, since, tt.want)
				}
			})
		})
	}
}

func TestALostStepIsAskedAbout(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		var records []remote.Record
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			records = append(records, *c.Record)
			c.Attached(0)
			return remote.Result{Attached: true, Output: remote.Output{Head: []byte("out\n")}}, nil
		}
		sp := spec(t, shell("x"))
		sp.Created = jobs.Micros(900 * time.Second / time.Microsecond)
		s.q.specs[task1] = sp
		got := s.one(fenced(lostAt(0)))
		want := jobs.Result{Job: "0000000001:fw1", Token: 7_000_000_000, Kind: jobs.KindEnd,
			Outcome: jobs.Succeeded, ExitCode: new(int), Note: "attached",
			Said: jobs.Said{Output: []byte("== attached to what an earlier attempt started ==\nout\n")}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
		asked := []remote.Record{{Job: "0000000001:fw1", Token: 7_000_000_000, Since: 300_000_000, Again: true}}
		if diff := cmp.Diff(asked, records); diff != "" {
			t.Errorf("records (-want +got):\n%s", diff)
		}
	})
}

// What may not start any more is looked at all the same.
func TestALostStepIsLookedAtInAHalt(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.q.verdict = func(jobs.Checkpoint) (jobs.Verdict, error) { return jobs.Stop, nil }
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			if !c.Record.Look {
				t.Error("it may start the step")
			}
			return remote.Result{ExitCode: -1}, fault(remote.KindNever, false, errors.New("the step never began"))
		}
		if got := s.one(fenced(lostAt(0))); got.Kind != jobs.KindBack || !strings.Contains(got.Error, "stopped before") {
			t.Errorf("%+v", got)
		}
	})
}

func TestALostStepOnAHostThatCannotTell(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.hosts.run = func(context.Context, fleet.Host, remote.Command) (remote.Result, error) {
			return remote.Result{ExitCode: -1}, fault(remote.KindUntold, false, errors.New("it has no record"))
		}
		got := s.one(fenced(lostAt(0)))
		if got.Outcome != jobs.Unknown || !got.KeepLock || !strings.HasPrefix(got.Error, "the worker on node n9/2 died") {
			t.Errorf("%+v", got)
		}
	})
}

// An upload whose worker is lost is gone on with at once: the host refuses the older attempt.
// One that cannot is left alone until that must be over.
func TestALostUploadGoesOn(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  error
		want string
		runs int
	}{
		{"fenced", nil, "end succeeded", 1},
		{"not fenced", fault(remote.KindUntold, false, errors.New("no record")), "retry 17s keep", 1},
		{"a newer attempt", fault(remote.KindStale, false, errors.New("newer")), "end unknown operator keep", 1},
		{"busy", &remote.Error{Op: "upload", Kind: remote.KindBusy, Wait: 8 * time.Second,
			Err: errors.New("busy")}, "retry 8s keep", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				sp := spec(t, scripts.Step{Name: "put", Kind: scripts.KindUpload, Timeout: stepTime,
					Upload: &scripts.UploadSpec{Content: "hello", To: "/x", Mode: 0o640}})
				sp.Created = jobs.Micros(900 * time.Second / time.Microsecond)
				s.q.specs[task1] = sp
				uploads := 0
				s.hosts.upload = func(_ context.Context, _ fleet.Host, u remote.Upload) error {
					uploads++
					want := remote.Record{Job: "0000000001:fw1", Token: 7_000_000_000, Since: 300_000_000, Again: true}
					if u.Record == nil || *u.Record != want {
						t.Errorf("the host is told %+v, want %+v", u.Record, want)
					}
					return tt.err
				}
				got := s.one(fenced(lostAt(0)))
				if v := verdict(got, false); v != tt.want || uploads != tt.runs {
					t.Errorf("%s after %d uploads, want %s: %s", v, uploads, tt.want, got.Error)
				}
			})
		})
	}
}

// On a host without records it is not, and the host is told nothing.
func TestUploadsToHostsWithoutRecords(t *testing.T) {
	for name, tt := range map[string]struct {
		grant func(*jobs.Grant)
		want  string
	}{
		"fresh": {func(*jobs.Grant) {}, "end succeeded"},
		"lost":  {lostAt(0), "retry 17s keep"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.q.specs[task1] = spec(t, scripts.Step{Name: "put", Kind: scripts.KindUpload, Timeout: stepTime,
					Upload: &scripts.UploadSpec{Content: "hello", To: "/x", Mode: 0o640}})
				s.hosts.upload = func(_ context.Context, _ fleet.Host, u remote.Upload) error {
					if u.Record != nil {
						t.Errorf("the host is told %+v", u.Record)
					}
					return nil
				}
				if got := verdict(s.one(tt.grant), false); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		})
	}
}
