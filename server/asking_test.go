package server_test

import (
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// A host is asked about what ended unknown, as long as Redis keeps it; else it is said why not.
func TestAHostIsAskedOnlyAboutWhatEndedUnknown(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{redis: &cfg, history: store})
	task := w.submit(run("fw*")).Task
	ask := func(host string, status int, words string) (did jobs.AskOrdered) {
		t.Helper()
		path := "/v1/jobs/" + string(jobs.NewID(task, host)) + "/ask"
		var p problem
		if status == 200 {
			if res := w.call("POST", path, map[string]string{"reason": "INC-7"}, &did); res.StatusCode != 200 {
				t.Errorf("%s: %s", host, res.Status)
			}
			return did
		}
		if res := w.call("POST", path, nil, &p); res.StatusCode != status || !strings.Contains(p.Detail, words) {
			t.Errorf("%s: %s: %s", host, res.Status, p.Detail)
		}
		return did
	}
	ask("fw002", 409, "is queued: it has not ended: only what ended unknown is asked about")
	ask("fw999", 404, "not found")
	for _, zone := range []string{"default", "eu"} {
		w.work(zone, func(host string) jobs.Result {
			r := succeed(host)
			if host == "fw002" {
				r.Outcome = jobs.Unknown
			}
			return r
		})
	}
	if did := ask("fw001", 200, ""); did.Known != jobs.Succeeded {
		t.Errorf("one that succeeded: %+v", did)
	}
	first, second := ask("fw002", 200, ""), ask("fw002", 200, "")
	if first.Already || first.Known != "" || !second.Already {
		t.Errorf("ordered %+v, %+v", first, second)
	}
	var j jobs.JobInfo
	w.call("GET", "/v1/jobs/"+string(jobs.NewID(task, "fw002")), nil, &j)
	if j.Ask == nil || !strings.Contains(j.Ask.Note, "INC-7") || !j.Ask.Answered.IsZero() {
		t.Errorf("job %+v", j.Ask)
	}
	waitFor(t, "history", func() bool {
		r, err := store.Report(t.Context(), task)
		return err == nil && len(r.Jobs) == 3 && r.Task.State == jobs.TaskEnded
	})
	m.SetTime(time.Now().Add(25 * time.Hour))
	m.FastForward(25 * time.Hour)
	ask("fw002", 409, "and Redis has forgotten it: a host can be asked about a job as long as Redis keeps it")
	ask("fw001", 409, "ended succeeded: only what ended unknown is asked about")
	var past api.PastJob
	w.call("GET", "/v1/jobs/"+string(jobs.NewID(task, "fw002")), nil, &past)
	if past.Outcome != jobs.Unknown {
		t.Errorf("in history %+v", past)
	}
}
