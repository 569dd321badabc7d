package history_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/history"
	"muster/jobs"
)

func TestWhatRanIsKeptWithItsTask(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		asked, before := task(taskID(1), 2), task(taskID(2), 1)
		asked.Proven, asked.Reason = true, "change 7"
		asked.Ran = jobs.NewRan("1", "abc", []jobs.Argument{{Name: "cmd", Value: "uname\x00\xff"}})
		good := job(taskID(1), "fw001", jobs.Succeeded, time.Second)
		bad := job(taskID(1), "fw002", jobs.Failed, time.Second)
		other := job(taskID(2), "fw001", jobs.Succeeded, time.Minute)
		store(t, s, history.Batch{Tasks: []jobs.TaskInfo{asked, before}, Ended: []api.PastJob{good, bad, other},
			Events: []jobs.Happening{
				happened(1, "submit", taskID(1), map[string]any{"operator": "alice"}),
				happened(2, "take", good.ID, map[string]any{"node": "n1/1", "attempt": 1.0}),
				happened(3, "step", good.ID, map[string]any{"step": 1.0}),
				happened(4, "end", good.ID, map[string]any{"outcome": "succeeded"})}})

		got, err := s.Task(t.Context(), taskID(1))
		if err != nil || !got.Proven || got.Reason != "change 7" || cmp.Diff(asked.Ran, got.Ran) != "" {
			t.Errorf("task %+v, %v", got, err)
		}
		list, _, err := s.Jobs(t.Context(), history.Filter{}, "", 10)
		if err != nil || len(list) != 3 {
			t.Fatal(list, err)
		}
		for _, j := range list {
			want := &api.Asked{On: "all"}
			if j.ID.Task() == taskID(1) {
				want = &api.Asked{On: "all", Proven: true, Reason: "change 7", Ran: asked.Ran}
			}
			if diff := cmp.Diff(want, j.Asked); diff != "" {
				t.Errorf("%s: %s", j.ID, diff)
			}
		}
		if j, err := s.Job(t.Context(), good.ID); err != nil || j.Asked.Ran.Arguments[0].Name != "cmd" {
			t.Errorf("job %+v, %v", j, err)
		}
		wantCourse(t, s, good.ID)
	})
}

func wantCourse(t *testing.T, s *history.Store, id jobs.ID) {
	t.Helper()
	c, err := s.Course(t.Context(), id)
	if err != nil || len(c.Attempts) != 1 || c.Attempts[0].How != "succeeded" || len(c.Steps) != 1 ||
		c.Steps[0].Step != 1 {
		t.Errorf("course %+v, %v", c, err)
	}
}

func TestATaskOfAnOlderVersionDoesNotSayWhatRan(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		store(t, s, history.Batch{Tasks: []jobs.TaskInfo{task(taskID(1), 1)}})
		if err := s.Exec(t.Context(), "update tasks set proven = -1, reason = '', ran = ''"); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Task(t.Context(), taskID(1)); err != nil || got.Ran != nil || got.Proven {
			t.Errorf("task %+v, %v", got, err)
		}
	})
}
