package queue_test

import (
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/zonetest"
)

// brokenOff lists calls that may break off before any of their writes. Each function prepares a
// zone with a task of two jobs, takes the jobs that it needs, and returns the call.
var brokenOff = []struct {
	name  string
	first int // jobs taken before the call
	call  func(jobs.Grant) []jobs.Result
	want  int // jobs that the call asks for
}{
	{"a first take", 0, nil, 1},
	{"a take of two", 0, nil, 2},
	{"an end", 1, says(jobs.KindEnd, jobs.Succeeded), 0},
	{"an end and a take", 1, says(jobs.KindEnd, jobs.Failed), 1},
	{"an end that is not known", 1, says(jobs.KindEnd, jobs.Unknown), 1},
	{"the last ends", 2, says(jobs.KindEnd, jobs.Succeeded), 0},
	{"another try", 1, says(jobs.KindRetry, jobs.Unreachable), 1},
	{"a wait", 1, says(jobs.KindWait, ""), 1},
	{"a deferral", 1, says(jobs.KindDefer, ""), 1},
	{"a job that is given back", 1, says(jobs.KindBack, ""), 1},
}

// says makes results of a kind; a job that is tried again is due after a minute.
func says(kind jobs.Kind, o jobs.Outcome) func(jobs.Grant) []jobs.Result {
	return func(g jobs.Grant) []jobs.Result {
		r := jobs.Result{Job: g.Job, Token: g.Token, Kind: kind, Outcome: o}
		if kind == jobs.KindWait || kind == jobs.KindRetry {
			r.Delay = time.Minute
		}
		if kind == jobs.KindDefer {
			r.Until, r.Release = jobs.Micros(g.Token).Add(time.Hour), true
		}
		return []jobs.Result{r}
	}
}

// Between any two writes of a call every job is in at least one list, no job with a record is in a
// list without records, and the counters are right. Random walks rarely stop at these places
// (TestAScriptThatBreaksOffIsMended); this test tries them all.
func TestACallMayBreakOffBeforeEachOfItsWrites(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		for _, tt := range brokenOff {
			tries := 0
			for stop := 1; stop == 1 || w.broken; stop++ {
				tries = stop
				calm(t, w)
				w.submit(t, "fw0", "fw1")
				var results []jobs.Result
				if tt.first > 0 {
					for _, g := range w.take(t, "1", tt.first).Jobs {
						results = append(results, tt.call(g)...)
					}
				}
				w.stop = stop
				w.take(t, "1", tt.want, results...)
				if wrong := zonetest.Broken(w.zone); len(wrong) > 0 {
					t.Errorf("%s, broken off before its write %d: %s", tt.name, stop, strings.Join(wrong, ", "))
				}
			}
			if tries < 5 {
				t.Errorf("%s has only %d writes: is it the call that is meant?", tt.name, tries-1)
			}
		}
	})
}
