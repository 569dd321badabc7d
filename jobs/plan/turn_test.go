package plan_test

import (
	"testing"
	"time"

	"muster/jobs/plan"
	"muster/windows"
)

func behind(t plan.Task, most int, tasks ...int) plan.Task {
	t.Turn = plan.Turn{Behind: tasks, Most: most}
	return t
}

func TestATaskBeginsWhenItsTurnComes(t *testing.T) {
	t.Parallel()
	minute := time.Minute
	late := behind(work("b", 1, minute), 1, 0)
	late.Turn.Lag = time.Second
	for _, c := range []struct {
		name  string
		slots int
		tasks []plan.Task
		done  []time.Duration // of each task, after now
	}{
		{"one after the other", 10, []plan.Task{work("a", 3, minute), behind(work("b", 3, minute), 1, 0),
			behind(work("c", 1, minute), 1, 0, 1)}, []time.Duration{minute, 2 * minute, 3 * minute}},
		{"a server needs a moment", 10, []plan.Task{work("a", 3, minute), late},
			[]time.Duration{minute, 2*minute + time.Second}},
		{"two at a time", 10, []plan.Task{work("a", 1, 3*minute), behind(work("b", 1, minute), 2, 0),
			behind(work("c", 1, minute), 2, 0, 1)}, []time.Duration{3 * minute, minute, 2 * minute}},
		{"none overtakes a task that waits", 10, []plan.Task{work("a", 1, 3*minute),
			behind(work("b", 1, minute), 1, 0), behind(work("c", 1, minute), 5, 0, 1)},
			[]time.Duration{3 * minute, 4 * minute, 4 * minute}},
		{"behind the last wave", 10, []plan.Task{waved(work("a", 2, minute), 0, 1, 1),
			behind(work("b", 1, minute), 1, 0)}, []time.Duration{2 * minute, 3 * minute}},
		{"its own waves begin with its turn", 10, []plan.Task{work("a", 1, minute),
			behind(waved(work("b", 2, minute), minute, 1, 1), 1, 0)},
			[]time.Duration{minute, 4 * minute}},
		{"another task has the slots meanwhile", 1, []plan.Task{work("a", 1, minute),
			behind(work("b", 1, minute), 1, 0), work("c", 2, minute)},
			[]time.Duration{minute, 3 * minute, 4 * minute}}, // in turns
		{"it is due later than its turn", 10, []plan.Task{work("a", 1, minute),
			behind(work("b", 1, minute, func(_ int, j *plan.Job) { j.Due = now.Add(time.Hour) }), 1, 0)},
			[]time.Duration{minute, 61 * minute}},
	} {
		out := plan.Run(world(t, "", c.slots, c.tasks...))
		for i, want := range c.done {
			if got := out[i].Done.Sub(now); got != want {
				t.Errorf("%s: task %d is done after %s, want %s", c.name, i, got, want)
			}
		}
	}
}

// Behind a task with a host that is never done nothing of the lane begins, and the plan says why.
func TestBehindATaskThatNeverEndsNoneBegins(t *testing.T) {
	t.Parallel()
	first := windowed(work("a", 2, time.Minute))
	first.Jobs[0].Place = windows.Place{Host: "a00000", Customer: "nobody"}
	out := plan.Run(world(t, "4h", 5, first, behind(work("b", 2, time.Minute), 1, 0),
		behind(work("c", 1, time.Minute), 1, 0, 1)))
	for _, f := range out[1:] {
		for _, j := range f.Jobs {
			if j.Never != plan.BehindNever || !f.Done.IsZero() {
				t.Errorf("%+v", f)
			}
		}
	}
}
