package history_test

import (
	"testing"

	"muster/history"
	"muster/jobs"
)

// Redis forgets the zones of a task one by one, each a day after its end. It still reports the
// rest of the task, and that must not reduce the number of its hosts.
func TestATaskOfWhichRedisHasForgottenAZoneKeepsItsHosts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		open := task(taskID(1), 3)
		open.State = jobs.TaskRunning
		store(t, s, history.Batch{Tasks: []jobs.TaskInfo{open}})
		store(t, s, history.Batch{Tasks: []jobs.TaskInfo{task(taskID(1), 1)}})
		if got, err := s.Task(t.Context(), taskID(1)); err != nil || got.Total != 3 || got.State != jobs.TaskEnded {
			t.Errorf("it is %+v, %v", got, err)
		}
		more := task(taskID(1), 4)
		if err := s.Reconcile(t.Context(), more, nil, nil); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Task(t.Context(), taskID(1)); err != nil || got.Total != 4 {
			t.Errorf("more of it was put: %+v, %v", got, err)
		}
	})
}
