package main

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
	"muster/testkit/apitest"
)

const timedJob = `{"id": "0wcy7y2fb2:fw001", "host": "fw001", "state": "ended", "outcome": "succeeded",
	"due": "2026-11-20T10:00:00Z", "started": "2026-11-20T10:01:00Z", "finished": "2026-11-21T10:01:00Z",
	"times": {"running": 8.25, "queued": 60, "window": 86000, "verifying": 90, "sleeping": 3}}`

// The views show the uses of a job's time, and TOOK shows its working time.
func TestTimesAreShown(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/jobs/" + apitest.AJob: apitest.Answer(timedJob),
		"GET /v1/tasks/" + apitest.ATask + "/report": apitest.Answer(`{"task": {"task": "0wcy7y2fb2"}, "total": 1, "jobs": [` + timedJob + `],
			"spent": [{"use": "window", "jobs": 1, "sum": 86000, "p50": 86000, "p90": 86000, "max": 86000},
				{"use": "running", "jobs": 1, "sum": 8.25, "p50": 8.25, "p90": 8.25, "max": 8.25}]}`)})
	_, out, _ := muster(t, a.URL, "job", apitest.AJob)
	apitest.WantParts(t, "job", out, "took       1m38s\n",
		"times      queued 1m00s, window 23h53m, running 8.2s, verifying 1m30s\n")
	_, out, _ = muster(t, a.URL, "report", apitest.ATask)
	apitest.WantParts(t, "report", out, "TIME", "window      1  23h53m", "running     1    8.2s")
	_, out, _ = muster(t, a.URL, "report", apitest.ATask, "--form", "csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 2 || strings.Join(rows[0][12:19], " ") !=
		"queued_s window_s gate_s waiting_s connecting_s running_s verifying_s" ||
		strings.Join(rows[1][12:19], " ") != "60.000 86000.000    8.250 90.000" {
		t.Errorf("csv: %v, %q", err, rows)
	}
}

// wantWork checks the times of jobs that really ran.
func wantWork(t *testing.T, task jobs.TaskInfo, list []api.PastJob) {
	t.Helper()
	for _, j := range list {
		sum := j.Times.Of(jobs.Uses()...)
		if all := j.Finished.Sub(task.Submitted.Time); sum <= 0 || sum > all {
			t.Errorf("%s: %s of its %s are counted: %v", j.ID, sum, all, j.Times)
		}
		if j.Times[jobs.Connecting] <= 0 || (j.Times[jobs.Acting] > 0) != (j.Outcome != jobs.Unreachable) {
			t.Errorf("%s %s: %v", j.ID, j.Outcome, j.Times)
		}
	}
}
