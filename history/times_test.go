package history_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/history"
	"muster/jobs"
)

// An estimate predicts work, so it must not count a window in the middle of a job, nor the time of
// a person's answer, nor the time until a worker was free.
func TestEstimatesCountOnlyWhatWasDone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		j := job(taskID(1), "fw001", jobs.Succeeded, 20*time.Hour)
		j.Attempt = 3
		j.Times = jobs.Times{jobs.Queueing: 300, jobs.InWindow: 70000, jobs.AtGate: 1000,
			jobs.Connecting: 2, jobs.Acting: 100.5, jobs.Verifying: 60, jobs.Pausing: 30}
		waited := job(taskID(1), "vpn1", jobs.Succeeded, 5*time.Second) // and did nothing else
		waited.Model, waited.Times = "v1", jobs.Times{jobs.Queueing: 900}
		store(t, s, history.Batch{Ended: []api.PastJob{j, waited}})
		kind := func(model string) history.Kind { return history.Kind{"exec", model, "acme"} }
		took := 192500 * time.Millisecond
		want := []history.Estimate{{kind("v1"), 5 * time.Second, 5 * time.Second, 1}, {kind("x200"), took, took, 1}}
		got, err := s.Estimates(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	})
}

// The use of the jobs' time is stored and found again, and a report sums it up.
func TestTimesAreKept(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		b := history.Batch{Tasks: []jobs.TaskInfo{task(taskID(1), 5)}}
		for i, host := range []string{"a", "b", "c", "d"} {
			j := job(taskID(1), host, jobs.Succeeded, time.Minute)
			j.Times = jobs.Times{jobs.Acting: float64(i + 1)}
			if i == 3 {
				j.Times[jobs.InWindow] = 3600.25
			}
			b.Ended = append(b.Ended, j)
		}
		b.Ended = append(b.Ended, job(taskID(1), "e", jobs.Expired, 0)) // of which nothing is known
		store(t, s, b)
		for i := range b.Ended {
			b.Ended[i].Asked = nil // the report says it of the task
		}
		r, err := s.Report(t.Context(), taskID(1))
		if diff := cmp.Diff(b.Ended, r.Jobs); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
		want := []api.Spent{{Use: jobs.InWindow, Jobs: 1, Sum: 3600.25, P50: 3600.25, P90: 3600.25, Max: 3600.25},
			{Use: jobs.Acting, Jobs: 4, Sum: 10, P50: 2, P90: 4, Max: 4}}
		if diff := cmp.Diff(want, r.Spent); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
