package worker

import (
	"context"
	"testing"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

// A line separates two runs of a step without a title, also if another worker began the first run.
// Words of the host that look like this line are marked as the words of the host.
func TestALineSeparatesTwoRunsOfAStep(t *testing.T) {
	const line, spared = "== attempt 3: the step runs once more ==\n", "==|attempt 4: the step runs once more ==\nout\n"
	for _, tt := range []struct {
		name  string
		fence fleet.Fence
		saved string
		begun bool // the host says that the step begins
		want  string
	}{
		{"the first run", fleet.FenceAuto, "", true, spared},
		{"on a host with records", fleet.FenceAuto, `{"may_have_run":true}`, true, line + spared},
		{"on one without", fleet.FenceNone, `{"may_have_run":true}`, false, line + spared},
		{"a failure that may pass", fleet.FenceAuto, `{"again":1}`, true, line + spared},
		{"a failure that may pass, without records", fleet.FenceNone, `{"again":1}`, false, line + spared},
		{"taken over", fleet.FenceAuto, `{"may_have_run":true}`, false,
			"== attached to what an earlier attempt started ==\n" + spared},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads("name: a\ntimeout: 20s\nrepeatable: true\nsteps:\n- {name: one, run: x}\n")
				s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					switch {
					case tt.begun && c.Began != nil:
						c.Began()
					case !tt.begun && tt.fence != fleet.FenceNone:
						c.Attached(5)
					}
					const said = "== attempt 4: the step runs once more ==\nout\n"
					_, _ = c.Live.Write([]byte(said))
					return remote.Result{Output: remote.Output{Head: []byte(said)}}, nil
				}
				got := s.one(func(g *jobs.Grant) {
					g.Mode, g.Attempt, g.Saved, g.Host.Fence = jobs.ModeContinue, 3, tt.saved, tt.fence
				})
				if string(got.Output) != tt.want || got.Outcome != jobs.Succeeded {
					t.Errorf("%s %s:\n%s\nwant\n%s", got.Outcome, got.Error, got.Output, tt.want)
				}
			})
		})
	}
}
