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

func fenced(change func(*jobs.Grant)) func(*jobs.Grant) {
	return func(g *jobs.Grant) {
		h := *g.Host
		h.Fence = fleet.FenceRequired
		g.Host = &h
		g.Token = 7_000_000_000
		change(g)
	}
}

// The host must have kept records since the commit of the task, by the clock of Redis. The clock of
// the server may be wrong by ten minutes, and the first rollout of a fleet may begin in them.
func TestTheRecordOfALostStepCountsFromTheCommitOfItsTask(t *testing.T) {
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

func TestTheHostIsAskedAboutALostStep(t *testing.T) {
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

// The host is asked about a step also if the step may not start any more.
func TestTheHostIsAskedAboutALostStepDuringAHalt(t *testing.T) {
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

func TestALostStepWithoutARecordEndsUnknown(t *testing.T) {
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

// An upload whose worker is lost continues at once, because the host refuses the older attempt. If
// the host cannot refuse it, the upload waits until the older attempt must be over.
func TestALostUploadContinues(t *testing.T) {
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
						t.Errorf("the record is %+v, want %+v", u.Record, want)
					}
					return tt.err
				}
				got := s.one(fenced(lostAt(0)))
				if v := inWords(got, false); v != tt.want || uploads != tt.runs {
					t.Errorf("%s after %d uploads, want %s: %s", v, uploads, tt.want, got.Error)
				}
			})
		})
	}
}

// Such a host cannot refuse an older attempt, so a lost upload waits.
func TestAHostWithoutRecordsGetsAnUploadWithoutARecord(t *testing.T) {
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
						t.Errorf("the record is %+v, want none", u.Record)
					}
					return nil
				}
				if got := inWords(s.one(tt.grant), false); got != tt.want {
					t.Errorf("%s, want %s", got, tt.want)
				}
			})
		})
	}
}
