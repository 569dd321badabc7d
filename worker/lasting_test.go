package worker

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

func TestAnUploadOutlivesItsConnection(t *testing.T) {
	lost := fault(remote.KindLost, true, errors.New("the connection ended"))
	away := fault(remote.KindUnreachable, false, errors.New("no route"))
	for _, tt := range []struct {
		name  string
		cuts  int     // the number of uploads that lose their connection
		dials []error // the errors of new connections
		want  jobs.Kind
		out   jobs.Outcome
		took  int // uploads
	}{
		{"once", 1, nil, jobs.KindEnd, jobs.Succeeded, 2},
		{"several times", 4, nil, jobs.KindEnd, jobs.Succeeded, 5},
		{"the host is away for a while", 1, []error{away, away}, jobs.KindEnd, jobs.Succeeded, 2},
		{"too often", 9, nil, jobs.KindRetry, "", 6},
		{"the host is away for long", 1, []error{away, away, away, away, away, away},
			jobs.KindRetry, "", 1},
		{"the host is another", 1, []error{fault(remote.KindHostKey, false, errors.New("wrong key"))},
			jobs.KindRetry, "", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				made := spec(t, scripts.Step{Name: "put", Kind: scripts.KindUpload, Timeout: time.Hour,
					Upload: &scripts.UploadSpec{Content: "hello", To: "/x", Mode: 0o640}},
					shell("after"))
				made.Timeout = jobs.AttemptTimeout(time.Hour)
				s.q.specs[task1] = made
				uploads, dials := 0, 0
				s.hosts.dial = func(context.Context, fleet.Host) error {
					dials++
					if n := dials - 2; n >= 0 && n < len(tt.dials) {
						return tt.dials[n]
					}
					return nil
				}
				var bounds []time.Duration
				s.hosts.upload = func(ctx context.Context, _ fleet.Host, u remote.Upload) error {
					uploads++
					bounds = append(bounds, u.Bound)
					if text, err := io.ReadAll(u.Content); string(text) != "hello" || err != nil {
						t.Errorf("upload %d gets %q, %v", uploads, text, err)
					}
					if _, err := works(ctx, time.Minute); err != nil {
						return err
					}
					if uploads <= tt.cuts {
						return lost
					}
					return nil
				}
				got := s.one(func(g *jobs.Grant) { g.Timeout = made.Timeout })
				if got.Kind != tt.want || got.Outcome != tt.out || uploads != tt.took {
					t.Errorf("%s %s after %d uploads: %s", got.Kind, got.Outcome, uploads, got.Error)
				}
				for i := 1; i < len(bounds); i++ {
					if bounds[i] > bounds[i-1]-time.Minute {
						t.Errorf("the bounds are %v: want that each has less time", bounds)
					}
				}
				if open := s.hosts.open; open != 0 {
					t.Errorf("%d connections are left open", open)
				}
				if after := len(s.hosts.started()); (after == 1) != (tt.out == jobs.Succeeded) {
					t.Errorf("%d steps ran after the upload", after)
				}
			})
		})
	}
}
