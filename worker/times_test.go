package worker

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// timeless compares results without their times.
var timeless = cmpopts.IgnoreFields(jobs.Result{}, "Said.Spent")

const lengthy = `
name: lengthy
timeout: 20s
steps:
  - {name: flash, run: flash}
  - {name: back, verify: {check: well}}
  - {name: soak, wait: {for: 1h}}
  - {name: tell, run: tell}
`

// The queue hands out a job 7 s after each due time. The job connects in 2 s, runs commands for 3 s
// and probes of 1 s. All of its 4,000 s count under one use, except the time of muster itself.
func TestTheTimeOfAJobIsCountedByUse(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(lengthy)
		l, probes := newLife(t, s), 0
		l.late = 7 * time.Second
		l.grant.Due = jobs.MicrosOf(l.began.Add(-l.late))
		s.hosts.dial = func(context.Context, fleet.Host) error {
			<-time.After(2 * time.Second)
			return nil
		}
		s.hosts.run = func(ctx context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
			if c.Shell != "well" {
				return works(ctx, 3*time.Second)
			}
			r, err := works(ctx, time.Second)
			if probes++; probes < 3 {
				r.ExitCode = scripts.NotYet
			}
			return r, err
		}
		r := l.live(20)
		got, err := jobs.ParseLedger(r.Spent)
		want := jobs.Times{jobs.Queueing: 5 * 7, jobs.Connecting: 5 * 2, jobs.Acting: 2 * 3,
			jobs.Verifying: 30 + 30 + 40 + 3*1, jobs.Pausing: 3600}
		near := cmpopts.EquateApprox(0, 0.1) // each call to the queue takes a millisecond
		if d := cmp.Diff(want, got.Times(), near); d != "" || err != nil || r.Outcome != jobs.Succeeded {
			t.Errorf("%s, %v, its times (-want +got):\n%s", r.Outcome, err, d)
		}
		if got.Until != 0 {
			t.Errorf("it has ended, and time is counted from %s on", got.Until)
		}
		sum := 0.0
		for _, seconds := range got.Times() {
			sum += seconds
		}
		all := time.Since(l.began) + 7*time.Second
		if left := all.Seconds() - sum; left < 0 || left > 0.1 {
			t.Errorf("it took %s, of which %.3f s were counted", all, sum)
		}
	})
}

// A host that is never reached costs the time of its connects, and the pauses between the tries.
func TestTimeOfAHostThatIsAway(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.reads(lengthy)
		l := newLife(t, s)
		s.hosts.dial = func(context.Context, fleet.Host) error {
			<-time.After(4 * time.Second)
			return fault(remote.KindUnreachable, false, errors.New("no route"))
		}
		r := l.live(20)
		got, err := jobs.ParseLedger(r.Spent)
		want := jobs.Times{jobs.Connecting: 3 * 4, jobs.Pausing: 2 * 5}
		if d := cmp.Diff(want, got.Times(), cmpopts.EquateApprox(0, 0.1),
			cmpopts.IgnoreMapEntries(func(u jobs.Use, _ float64) bool { return u == jobs.Queueing })); d != "" ||
			err != nil || r.Outcome != jobs.Unreachable {
			t.Errorf("%s, %v, its times (-want +got):\n%s", r.Outcome, err, d)
		}
	})
}
