package worker

import (
	"context"
	"strings"
	"testing"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

// This file is about disruptive jobs that are half way: what they did to their host is
// remembered, and their group is not given to anybody before it is known how that is.

// disrupts makes the task a disruptive one of a runbook's text.
func (s *stand) disrupts(text string) {
	s.reads("disruptive: true\n" + text)
	spec := s.q.specs[task1]
	spec.Disruptive = true
	s.q.specs[task1] = spec
}

// A step that ran, failed and is to be tried once more has disturbed its host: of one that
// does not answer any more then nobody knows how it is.
func TestAStepThatIsTriedAgainHasDisturbed(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		s.disrupts(changing)
		s.says(map[string]string{"look": "state=old", "change": "busy#7"})
		tried, says := false, s.hosts.run
		s.hosts.run = func(ctx context.Context, h fleet.Host, c remote.Command) (remote.Result, error) {
			tried = tried || c.Shell == "change"
			return says(ctx, h, c)
		}
		s.hosts.dial = func(context.Context, fleet.Host) error {
			if tried {
				return fault(remote.KindUnreachable, false, errAway)
			}
			return nil
		}
		l := newLife(t, s)
		if r := l.live(10); r.Outcome != jobs.Unknown {
			t.Errorf("got %s, want unknown\n%s", r.Outcome, strings.Join(l.log, "\n"))
		}
	})
}
