package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

func TestWhatRedisForgotIsShownFromHistory(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{redis: &cfg, history: store})
	task := w.submit(run("fw*")).Task
	for _, zone := range []string{"default", "eu"} {
		w.work(zone, func(host string) jobs.Result {
			r := succeed(host)
			if host == "fw002" {
				r.Outcome = jobs.Failed
			}
			return r
		})
	}
	see := func(when string) {
		t.Helper()
		var info jobs.TaskInfo
		w.call("GET", "/v1/tasks/"+string(task), nil, &info)
		if info.Total != 3 || info.State != jobs.TaskEnded || info.Outcomes[jobs.Succeeded] != 2 {
			t.Errorf("%s: task %+v", when, info)
		}
		if list := w.jobsOf(task); len(list) != 3 {
			t.Errorf("%s: jobs %+v", when, list)
		}
		var j jobs.JobInfo
		w.call("GET", "/v1/jobs/"+string(jobs.NewID(task, "fw002")), nil, &j)
		if j.Outcome != jobs.Failed || j.Started.IsZero() {
			t.Errorf("%s: job %+v", when, j)
		}
		if _, text := w.raw("GET", "/v1/jobs/"+string(j.ID)+"/output", nil, nil); string(text) != "fine\n" {
			t.Errorf("%s: output %q", when, text)
		}
		var sum api.Summary
		w.call("GET", "/v1/tasks/"+string(task)+"/summary", nil, &sum)
		if len(sum.Groups) != 2 || string(sum.Groups[0].Output) != "fine\n" || sum.Groups[0].Count != 2 {
			t.Errorf("%s: summary %+v", when, sum.Groups)
		}
		var r api.Report
		w.call("GET", "/v1/tasks/"+string(task)+"/report", nil, &r)
		if len(r.Parts) != 2 || r.Total != 3 || r.Parts[0].Hosts+r.Parts[1].Hosts != 3 || len(r.Jobs) != 3 {
			t.Errorf("%s: report %+v", when, r)
		}
	}
	see("while Redis has it")
	waitFor(t, "history", func() bool {
		r, err := store.Report(t.Context(), task)
		return err == nil && len(r.Jobs) == 3 && r.Task.State == jobs.TaskEnded
	})
	m.SetTime(time.Now().Add(25 * time.Hour))
	m.FastForward(25 * time.Hour)
	see("when Redis has forgotten its jobs")
	m.FlushAll()
	see("when Redis has forgotten all of it")
	var p problem
	if res := w.call("POST", "/v1/tasks/"+string(task)+"/retry", nil, &p); res.StatusCode != 404 ||
		!strings.Contains(p.Detail, "the task ended at 2") || !strings.Contains(p.Detail, "history does") {
		t.Errorf("retry: %s %+v", res.Status, p)
	}
	if res := w.call("GET", "/v1/tasks/0000000000", nil, nil); res.StatusCode != 404 {
		t.Errorf("a task that never was: %s", res.Status)
	}
}

// The historian may read a stream more than a day after its tasks have ended, when Redis knows
// their names and not the number of their hosts: history then keeps the number that it has.
func TestATaskThatEndedADayAgoKeepsItsHostsInHistory(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{redis: &cfg})
	h := w.historian(store)
	read := func() {
		t.Helper()
		for more := true; more; {
			var err error
			if more, err = h.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	task := w.submit(run("fw*")).Task
	read()
	w.work("default", succeed)
	w.work("eu", succeed)
	m.SetTime(time.Now().Add(25 * time.Hour))
	m.FastForward(25 * time.Hour)
	read()
	got, err := store.Task(t.Context(), task)
	if err != nil || got.Total != 3 || got.State != jobs.TaskEnded || got.Outcomes[jobs.Succeeded] != 3 {
		t.Errorf("history has %+v, %v, want that all of three hosts succeeded", got, err)
	}
}

// A task that Redis lost while it ran has no end that anybody could wait for, and
// nobody knows what became of the jobs that had none.
func TestATaskThatRedisForgotBeforeItsEndIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{redis: &cfg, history: store})
	task := w.submit(run("fw*")).Task
	w.work("eu", succeed)
	waitFor(t, "history", func() bool {
		r, err := store.Report(t.Context(), task)
		return err == nil && len(r.Jobs) == 1 && r.Task.State != jobs.TaskEnded
	})
	m.FlushAll()
	begun := time.Now()
	var info jobs.TaskInfo
	w.call("GET", "/v1/tasks/"+string(task)+"?wait=20s", nil, &info)
	if took := time.Since(begun); !info.Forgotten || took > 10*time.Second {
		t.Errorf("after %s: task %+v, want it to be forgotten", took, info)
	}
	var r api.Report
	w.call("GET", "/v1/tasks/"+string(task)+"/report", nil, &r)
	if len(r.Parts) != 2 || r.Parts[1].Name != api.NotKnown || r.Parts[1].Hosts != 2 {
		t.Errorf("report %+v, want two hosts that are not known", r.Parts)
	}
	// Whatever is asked of it, the answer says what became of it.
	path, job := "/v1/tasks/"+string(task), "/v1/jobs/"+string(jobs.NewID(task, "fw001"))
	for _, ask := range []string{"GET " + job, "GET " + job + "/output", "GET " + path + "/output",
		"POST " + path + "/cancel", "POST " + path + "/retry", "POST " + path + "/pause",
		"POST " + path + "/resume"} {
		method, where, _ := strings.Cut(ask, " ")
		var body any
		if method == "POST" {
			body = map[string]string{"reason": "it is late"}
		}
		var p problem
		if res := w.call(method, where, body, &p); res.StatusCode != 404 || !strings.Contains(p.Detail,
			"forgotten by Redis before it ended; 1 of its 3 jobs are known to have ended") {
			t.Errorf("%s: %s %+v", ask, res.Status, p)
		}
	}
}

// The answer about a mistyped host does not say that Redis has forgotten the task.
func TestAJobThatATaskDoesNotHaveIsNotForgotten(t *testing.T) {
	t.Parallel()
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{history: store})
	task := w.submit(run("fw00[1-2]")).Task
	job, host := "/v1/jobs/"+string(jobs.NewID(task, "fw009")), map[string][]string{"hosts": {"fw009"}}
	see := func(state jobs.TaskState) {
		t.Helper()
		waitFor(t, "history", func() bool {
			got, err := store.Task(t.Context(), task)
			return err == nil && got.State == state
		})
		for ask, body := range map[string]any{"GET " + job: nil, "GET " + job + "/output": nil,
			"POST /v1/tasks/" + string(task) + "/cancel": host} {
			method, where, _ := strings.Cut(ask, " ")
			var p problem
			if res := w.call(method, where, body, &p); res.StatusCode != 404 ||
				!strings.Contains(p.Detail, "has no job on fw009") ||
				strings.Contains(p.Detail, "70 days") || strings.Contains(p.Detail, "forgotten") ||
				strings.Contains(p.Detail, "keeps no more") {
				t.Errorf("%s of a task that is %s: %s %+v", ask, state, res.Status, p)
			}
		}
	}
	see(jobs.TaskQueued)
	w.work("default", succeed)
	see(jobs.TaskEnded)
}

func TestHistoryIsListedAndExported(t *testing.T) {
	t.Parallel()
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{history: store, inventory: fixed(many(30))})
	task := w.submit(run("*")).Task
	w.work("default", succeed)
	waitFor(t, "history", func() bool {
		list, _, err := store.Jobs(t.Context(), history.Filter{}, "", 100)
		return err == nil && len(list) == 30
	})
	seen := map[jobs.ID]bool{}
	for cursor, pages := "", 0; ; pages++ {
		var page api.PastJobs
		w.call("GET", "/v1/history?limit=7&operator=alice&task="+string(task)+"&cursor="+cursor, nil, &page)
		for _, j := range page.Jobs {
			seen[j.ID] = true
		}
		if cursor = page.Next; cursor == "" {
			if pages != 4 || len(seen) != 30 {
				t.Errorf("%d jobs on %d pages", len(seen), pages+1)
			}
			break
		}
	}
	res, text := w.raw("GET", "/v1/history/export?outcome=succeeded", nil, nil)
	lines := bufio.NewScanner(bytes.NewReader(text))
	n := 0
	for lines.Scan() {
		var j api.PastJob
		if err := json.Unmarshal(lines.Bytes(), &j); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 31 || !bytes.HasSuffix(text, []byte("{\"end\":true}\n")) || res.StatusCode != 200 {
		t.Errorf("export: %s, %d lines: %s", res.Status, n, text)
	}
	var state api.HistoryState
	w.call("GET", "/v1/history/state", nil, &state)
	if len(state.Streams) == 0 || !strings.HasPrefix(state.Where, "sqlite /") || len(state.Gaps) > 0 {
		t.Errorf("state %+v", state)
	}
	var p problem
	bad := "/v1/history?outcome=fine&from=yesterday&task=x&cursor=7&host=a%20b"
	if res := w.call("GET", bad, nil, &p); res.StatusCode != http.StatusUnprocessableEntity || len(p.Errors) != 4 {
		t.Errorf("mistakes: %s %s", res.Status, p.words())
	}
	if res := w.call("GET", "/v1/history?cursor=7", nil, &p); res.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a wrong cursor: %s", res.Status)
	}
}

func TestAServerWithoutHistorySaysSo(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for _, path := range []string{"", "/state", "/export"} {
		var p problem
		if res := w.call("GET", "/v1/history"+path, nil, &p); res.StatusCode != 404 ||
			!strings.Contains(p.Detail, "history.url is none") {
			t.Errorf("%s: %s %s", path, res.Status, p.words())
		}
	}
}
