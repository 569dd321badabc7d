package worker

import (
	"context"
	"strings"
	"testing"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
)

// The transcript says that a full disk of the host has cut off the output. The worker concludes
// nothing from the rest: neither that a word is missing, nor which value a step saves.
func TestNothingIsConcludedFromALostOutput(t *testing.T) {
	const full = "the disk of the host was full"
	for _, tt := range []struct {
		name, more string
		code       int
		outcome    jobs.Outcome
		error      string
	}{
		{"nothing is expected", "", 0, jobs.Succeeded, ""},
		{"it failed", "", 4, jobs.Failed, `exit 4; the host said: "begun"`},
		{"found all the same", "expect: {match: begun}", 0, jobs.Succeeded, ""},
		{"refuted all the same", "expect: {no_match: begun}", 0, jobs.Failed, "the output matches"},
		{"not found", "expect: {match: done}", 0, jobs.Unknown, "it is not known whether it matches \"done\""},
		{"not refuted", "expect: {no_match: error}", 0, jobs.Unknown,
			"it is not known whether nothing in it matches \"error\""},
		{"JSON", "expect: {json: ['a == 1']}", 0, jobs.Unknown, "it is not known whether it is as expected"},
		{"to be saved", "save: {v: {match: '(.*)'}}", 0, jobs.Unknown, "it is not known which values to save"},
		{"to be saved, or not", "save: {v: {match: 'x', default: ''}}", 0, jobs.Unknown, "which values to save"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.reads("name: a\ntimeout: 20s\nsteps:\n- {name: b, run: x, " + tt.more + "}\n- {name: c, run: y}\n")
				s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (remote.Result, error) {
					r := remote.Result{}
					if c.Shell == "x" {
						r = remote.Result{ExitCode: tt.code, Lost: full}
						r.Output.Head = []byte("begun\n")
					}
					return r, nil
				}
				got := s.one()
				if got.Outcome != tt.outcome || got.KeepLock || !strings.Contains(got.Error, tt.error) ||
					tt.error == "" && got.Error != "" {
					t.Errorf("got %s, %q, want %s, %q", got.Outcome, got.Error, tt.outcome, tt.error)
				}
				const line = "begun\n== the output from here on is lost: " + full + " ==\n"
				if !strings.Contains(string(got.Output), line) || got.Note != "output lost: "+full {
					t.Errorf("note %q, transcript:\n%s", got.Note, got.Output)
				}
			})
		})
	}
}
