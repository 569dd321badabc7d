package staff_test

import (
	"slices"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/staff"
)

// A standby serves a zone after none of its own nodes has beaten for a time, and until one has again
// for that time. Each step is a look, at a second, and what it sees of the own node.
func TestAStandbyServesAndLeaves(t *testing.T) {
	t.Parallel()
	own := jobs.Node{ID: "own", State: "running", Zones: []string{"a", "b"}}
	other := jobs.Node{ID: "other", State: "running", Zones: []string{"c", "a"},
		Unusual: jobs.Unusual{Standby: []string{"a"}}}
	paused, starved, draining, gone := own, own, own, own
	paused.Paused = &jobs.Pause{Note: "alice"}
	starved.Governor = &jobs.Governor{Starved: true}
	draining.State, gone.State = jobs.NodeDraining, jobs.NodeGone
	here := []jobs.Node{own}
	type step struct {
		at    int
		nodes []jobs.Node
		serve bool
	}
	for name, steps := range map[string][]step{
		"nobody ever was there": {{0, nil, false}, {5, nil, false}, {10, nil, true}, {15, nil, true}},
		"a record is gone":      {{0, here, false}, {5, []jobs.Node{gone}, false}, {10, []jobs.Node{gone}, true}},
		"the other standby":     {{0, []jobs.Node{other}, false}, {10, []jobs.Node{other}, true}},
		"paused":                {{0, []jobs.Node{paused}, false}, {10, []jobs.Node{paused}, false}},
		"starved":               {{0, []jobs.Node{starved}, false}, {10, []jobs.Node{starved}, false}},
		"draining":              {{0, []jobs.Node{draining}, false}, {10, []jobs.Node{draining}, false}},
		"it comes back":         {{0, nil, false}, {10, nil, true}, {12, here, true}, {21, here, true}, {22, here, false}},
		"it comes back and fails": {{0, nil, false}, {10, nil, true}, {12, here, true},
			{14, nil, true}, {20, here, true},
			{29, here, true}, {30, here, false}},
		"it was away for a while": {{0, nil, false}, {9, here, false}, {12, nil, false}, {19, nil, true}},
		"Redis was away":          {{0, here, false}, {100, nil, false}, {109, nil, false}, {110, nil, true}},
		"Redis was away while it served": {{0, nil, false}, {10, nil, true}, {100, here, true},
			{109, here, true},
			{110, here, false}},
	} {
		s := staff.NewStandby(map[string]time.Duration{"a": 10 * time.Second})
		for i, step := range steps {
			got := s.Look(time.Duration(step.at)*time.Second, step.nodes)
			if slices.Contains(got, "a") != step.serve || len(got) > 1 {
				t.Errorf("%s, look %d: serves %v, want %t", name, i, got, step.serve)
			}
		}
	}
}

// A standby that was serving goes on with it after a restart, and forgets zones that are not its any
// more.
func TestAStandbyGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	s := staff.NewStandby(map[string]time.Duration{"a": time.Minute, "b": time.Minute})
	s.Resume(time.Hour, []string{"a", "z"})
	if got := s.Look(time.Hour+time.Second, nil); !slices.Equal(got, []string{"a"}) {
		t.Errorf("serves %v, want a", got)
	}
}
