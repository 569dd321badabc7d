package worker

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

// A member of the group cannot be marked at first, and each marker takes 2 s. All of this is time
// in which the job waited for its group, not for a window.
func TestTimeForAMarkerIsNoTimeForAWindow(t *testing.T) {
	inPair(t, func(t *testing.T, s *stand, p *pair) {
		p.away["fw3"] = true
		mark := s.hosts.mark
		s.hosts.mark = func(h fleet.Host, m remote.Marker) (remote.Marking, error) {
			<-time.After(2 * time.Second)
			return mark(h, m)
		}
		s.hosts.run = func(ctx context.Context, _ fleet.Host, _ remote.Command) (remote.Result, error) {
			return works(ctx, 3*time.Second)
		}
		near := cmpopts.EquateApprox(0, 0.1)
		g := s.q.put(task1, "fw2", p.member, func(g *jobs.Grant) { g.Due = jobs.Micros(g.Token) })
		s.start()
		s.finish()
		first := s.q.only(g.Job)
		l, err := jobs.ParseLedger(first.Spent)
		if err != nil || first.Kind != jobs.KindDefer || l.For != jobs.Queueing {
			t.Fatalf("%+v, %v: want it deferred, and the time from then on counted as queued", first, err)
		}
		if d := cmp.Diff(jobs.Times{jobs.Queueing: 3*2 + 2*2}, l.Times(), near); d != "" {
			t.Errorf("deferred, its times (-want +got):\n%s", d)
		}

		delete(p.away, "fw3")
		next := stand2(t, s)
		next.hosts.kin, next.hosts.mark = s.hosts.kin, s.hosts.mark
		r := next.one(func(g *jobs.Grant) {
			p.member(g)
			// It is due after the pause, and taken 20 s after it was deferred.
			g.Token, g.Due = jobs.Token(l.Until.Add(20*time.Second)), l.Until.Add(first.Delay)
			g.Spent, g.Saved = first.Spent, first.Saved
		})
		before := l.Times()[jobs.Queueing]
		if l, err = jobs.ParseLedger(r.Spent); err != nil || r.Outcome != jobs.Succeeded {
			t.Fatalf("%+v, %v", r, err)
		}
		want := jobs.Times{jobs.Queueing: before + 20 + 3*2, jobs.Acting: 3}
		if d := cmp.Diff(want, l.Times(), near); d != "" {
			t.Errorf("ended, its times (-want +got):\n%s", d)
		}
	})
}
