package history_test

import (
	"testing"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
)

// A plan that was right, one that was wrong, one that never became a task, and two of
// which the second one counts.
func TestAPlanThatWasWrongIsShown(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		save := func(id string, at time.Duration, runbook string, takes time.Duration) {
			t.Helper()
			p := api.Plan{ID: id, At: jobs.Time{Time: begin.Add(at)}, Runbook: runbook, On: "all",
				Operator: "alice", Hosts: 2}
			if takes > 0 {
				p.Done = jobs.Time{Time: begin.Add(at + takes)}
			}
			if err := s.SavePlan(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		submit := func(n int, at time.Duration, runbook string, took time.Duration) {
			t.Helper()
			one := task(taskID(n), 2)
			one.Runbook = runbook
			one.Submitted, one.Finished = jobs.Time{Time: begin.Add(at)}, jobs.Time{Time: begin.Add(at + took)}
			if took == 0 {
				one.State, one.Finished = jobs.TaskRunning, jobs.Time{}
			}
			store(t, s, history.Batch{Last: runbook, Tasks: []jobs.TaskInfo{one},
				Ended: []api.PastJob{job(taskID(n), "h1", jobs.Succeeded, took), job(taskID(n), "h2", jobs.Failed, took)}})
		}
		save("p1", 0, "right", 100*time.Second)
		submit(1, time.Minute, "right", 110*time.Second)
		save("p2", 0, "wrong", 100*time.Second)
		submit(2, time.Minute, "wrong", 1000*time.Second)
		save("p3", 0, "never", 100*time.Second)
		submit(3, 2*time.Hour, "never", 100*time.Second) // too late to be the one
		save("p4", 0, "twice", time.Second)
		save("p5", 30*time.Second, "twice", 100*time.Second)
		submit(5, time.Minute, "twice", 90*time.Second)
		save("p6", 0, "runs", 0)
		submit(6, time.Minute, "runs", 0)

		c, err := s.Calibrate(t.Context(), begin.Add(-time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		if c.Plans != 6 || len(c.Compared) != 4 || c.Wrong != 1 || c.Median != 1.1 {
			t.Errorf("calibration %+v", c)
		}
		for _, one := range c.Compared {
			switch {
			case one.ID == "p2" && (one.Off != 10 || one.Undone != 1 || one.Expected != 100*time.Second):
				t.Errorf("the one that was wrong: %+v", one)
			case one.ID == "p4" || one.ID == "p3":
				t.Errorf("compared: %+v", one)
			case one.ID == "p6" && (one.Off != 0 || one.Actual != 0 || one.State != "running"):
				t.Errorf("the one that runs: %+v", one)
			}
		}
		if c, err := s.Calibrate(t.Context(), begin.Add(time.Hour)); err != nil || c.Plans != 0 {
			t.Errorf("later ones: %+v, %v", c, err)
		}
	})
}
