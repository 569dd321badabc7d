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

// A worker asks a host with records about a step until the bound of the step is over, however often
// it cannot reach the host meanwhile: the host will be able to answer. After the bound the tries
// count.
func TestAStepIsFollowedAsLongAsItsBoundLasts(t *testing.T) {
	for _, tt := range []struct {
		name  string
		bound time.Duration
		away  time.Duration // the time without network, from the start of the step
		lost  bool          // the worker is lost, too
		want  jobs.Outcome
	}{
		{"66 seconds away", 10 * time.Minute, 66 * time.Second, false, jobs.Succeeded},
		{"for most of an hour", time.Hour, 55 * time.Minute, false, jobs.Succeeded},
		{"the worker is lost as well", time.Minute, 50 * time.Second, true, jobs.Succeeded},
		{"a short step", 10 * time.Second, 66 * time.Second, false, jobs.Unknown},
		{"for good", 10 * time.Minute, 24 * time.Hour, false, jobs.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				began, told := time.Now(), 0
				gone := func() bool { return time.Since(began) < tt.away }
				s.hosts.dial = func(context.Context, fleet.Host) error {
					if told > 0 && gone() {
						return fault(remote.KindUnreachable, false, errors.New("no route to host"))
					}
					return nil
				}
				s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					if told++; told == 1 {
						return remote.Result{ExitCode: -1}, fault(remote.KindLost, true, errors.New("cut off"))
					}
					if c.Record == nil || !c.Record.Again {
						t.Errorf("it is begun again: %+v", c.Record)
					}
					return remote.Result{Attached: true}, nil
				}
				s.reads(fmt.Sprintf("name: a\ntimeout: %s\nsteps: [{name: b, run: x}]\n", tt.bound))
				spec := s.q.specs[task1]
				spec.Timeout = jobs.AttemptTimeout(tt.bound)
				s.q.specs[task1] = spec
				l := newLife(t, s)
				l.grant.Host.Fence, l.grant.Timeout = fleet.FenceRequired, spec.Timeout
				l.lost = map[int]bool{1: tt.lost}
				got := l.live(200)
				if got.Outcome != tt.want || tt.want == jobs.Succeeded && got.Note != "attached" {
					t.Errorf("%+v\n%s", got, strings.Join(l.log, "\n"))
				}
				if tt.want == jobs.Unknown && time.Since(began) < tt.bound {
					t.Errorf("given up %s after it began:\n%s", time.Since(began), strings.Join(l.log, "\n"))
				}
			})
		})
	}
}
