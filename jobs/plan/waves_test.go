package plan_test

import (
	"strings"
	"testing"
	"time"

	"muster/jobs/plan"
	"muster/windows"
)

func waved(t plan.Task, soak time.Duration, waves ...int) plan.Task {
	t.Waves, t.Soak = waves, soak
	return t
}

func TestAWaveOpensWhenThoseBeforeAreDone(t *testing.T) {
	t.Parallel()
	minute := time.Minute
	for _, c := range []struct {
		name  string
		slots int
		tasks []plan.Task
		done  []time.Duration // of each task, after now
	}{
		{"one after the other", 10, []plan.Task{waved(work("a", 3, minute), 0, 1, 1, 1)},
			[]time.Duration{3 * minute}},
		{"all fit into two waves", 10, []plan.Task{waved(work("a", 11, minute), 0, 1, 10)},
			[]time.Duration{2 * minute}},
		{"with a pause", 10, []plan.Task{waved(work("a", 11, minute), 5*minute, 1, 10)},
			[]time.Duration{7 * minute}},
		{"a wave that is larger than the slots", 5, []plan.Task{waved(work("a", 11, minute), 0, 1, 10)},
			[]time.Duration{3 * minute}},
		{"two tasks share the slots", 1, []plan.Task{waved(work("a", 2, minute), 0, 1, 1),
			work("b", 1, minute)}, []time.Duration{3 * minute, 2 * minute}},
		{"two rollouts", 1, []plan.Task{waved(work("a", 2, minute), 0, 1, 1),
			waved(work("b", 2, minute), 10*minute, 1, 1)}, []time.Duration{3 * minute, 13 * minute}},
		{"without waves", 1, []plan.Task{work("a", 2, minute)}, []time.Duration{2 * minute}},
	} {
		out := plan.Run(world(t, "", c.slots, c.tasks...))
		for i, want := range c.done {
			if got := out[i].Done.Sub(now); got != want {
				t.Errorf("%s: task %d is done after %s, want %s", c.name, i, got, want)
			}
			if len(out[i].Jobs) != len(c.tasks[i].Jobs) {
				t.Errorf("%s: task %d has %d fates", c.name, i, len(out[i].Jobs))
			}
		}
	}
}

// A host that is never done keeps the waves after its own closed, and the plan says so.
func TestAWaveAfterOneThatNeverEndsNeverOpens(t *testing.T) {
	t.Parallel()
	task := waved(windowed(work("a", 3, time.Minute)), 0, 1, 2)
	task.Jobs[0].Place = windows.Place{Host: "a00000", Customer: "nobody"}
	out := plan.Run(world(t, "4h", 5, task))
	if out[0].Jobs[0].Never == "" || out[0].Jobs[1].Never != plan.AfterNever ||
		!strings.Contains(out[0].Jobs[2].Never, "never done") || !out[0].Done.IsZero() {
		t.Errorf("%+v", out[0])
	}
}
