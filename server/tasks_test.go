package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/testkit/queuetest"
)

func TestJobsComeInPages(t *testing.T) {
	t.Parallel()
	const n = 1203
	w := start(t, setup{inventory: fixed(many(n))})
	task := w.submit(run("all")).Task
	w.work("default", func(host string) jobs.Result {
		if host < "h0700" {
			return succeed(host)
		}
		return jobs.Result{Outcome: jobs.Failed, Class: jobs.ClassUser, Error: "no"}
	})
	for _, c := range []struct {
		question    string
		pages, jobs int
		first, last string
	}{
		{"", 3, n, "h0000", "h1202"},
		{"limit=400", 4, n, "h0000", "h1202"},
		{"limit=1203", 0, 0, "", ""},
		{"outcome=failed", 2, n - 700, "h0700", "h1202"},
		{"outcome=failed&limit=503", 0, 0, "", ""},
		{"outcome=failed&limit=100", 6, n - 700, "h0700", "h1202"},
		{"state=ended&outcome=succeeded&limit=350", 3, 700, "h0000", "h0699"},
		{"state=queued", 1, 0, "", ""},
		{"outcome=unknown&limit=1", 1, 0, "", ""},
	} {
		var got []jobs.JobInfo
		pages, cursor := 0, ""
		for {
			var page api.JobList
			path := fmt.Sprintf("/v1/tasks/%s/jobs?%s&cursor=%s", task, c.question, url.QueryEscape(cursor))
			if res := w.call("GET", path, nil, &page); res.StatusCode != http.StatusOK {
				break
			}
			pages++
			got = append(got, page.Jobs...)
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if pages != c.pages || len(got) != c.jobs {
			t.Errorf("%q: %d jobs on %d pages, want %d on %d", c.question, len(got), pages, c.jobs, c.pages)
			continue
		}
		if c.jobs > 0 && (got[0].Host != c.first || got[len(got)-1].Host != c.last) {
			t.Errorf("%q: from %s to %s", c.question, got[0].Host, got[len(got)-1].Host)
		}
	}
}

func TestOutputIsByteForByte(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := w.submit(run("fw001,vpn1")).Task
	hostile := []byte("<script>\x00\xff\x1b[2J\r\n")
	w.work("default", func(string) jobs.Result {
		return jobs.Result{Outcome: jobs.Succeeded, ExitCode: new(int), Said: jobs.Said{Output: hostile}}
	})
	res, text := w.raw("GET", "/v1/jobs/"+string(jobs.NewID(task, "fw001"))+"/output", nil, nil)
	if res.StatusCode != 200 || !bytes.Equal(text, hostile) {
		t.Errorf("got %s %q", res.Status, text)
	}
	if res.Header.Get("Content-Type") != "application/octet-stream" ||
		res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("a browser may run it: %v", res.Header)
	}
	res, text = w.raw("GET", "/v1/jobs/"+string(jobs.NewID(task, "vpn1"))+"/output", nil, nil)
	if res.StatusCode != 200 || len(text) != 0 {
		t.Errorf("of a job that did not run: %s %q", res.Status, text)
	}
	var j jobs.JobInfo
	w.call("GET", "/v1/jobs/"+string(jobs.NewID(task, "fw001")), nil, &j)
	if j.Host != "fw001" || j.Outcome != jobs.Succeeded || j.Attempt != 1 || *j.ExitCode != 0 {
		t.Errorf("job: %+v", j)
	}
}

// await asks for a task that is to change, in the background.
func (w *world) await(path string) <-chan jobs.TaskInfo {
	answer := make(chan jobs.TaskInfo, 1)
	go func() {
		var info jobs.TaskInfo
		_, text, err := w.try("GET", path, nil, nil)
		if err == nil {
			err = json.Unmarshal(text, &info)
		}
		if err != nil {
			w.t.Errorf("%s: %v", path, err)
		}
		answer <- info
	}()
	return answer
}

func TestWaitEndsWhenATaskChanges(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	path := "/v1/tasks/" + string(w.submit(run("fw*")).Task)

	var now jobs.TaskInfo
	begun := time.Now()
	w.call("GET", path+"?wait=60&seen=1", nil, &now) // others have ended than were seen: at once
	if now.State != jobs.TaskQueued {
		t.Errorf("state %s", now.State)
	}
	first := w.await(path + "?wait=60&seen=0")
	w.work("default", succeed)
	if got := <-first; got.Outcomes.Sum() == 0 {
		t.Errorf("answered without a change: %+v", got)
	}
	second := w.await(path + "?wait=1m&seen=2")
	w.work("eu", succeed)
	if got := <-second; got.State != jobs.TaskEnded {
		t.Errorf("answered before the end: %+v", got)
	}
	w.call("GET", path+"?wait=60&seen=3", nil, &now) // nothing will change any more
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	begun = time.Now()
	other := "/v1/tasks/" + string(w.submit(run("fw*")).Task)
	if w.call("GET", other+"?wait=300ms", nil, &now); time.Since(begun) < 300*time.Millisecond {
		t.Errorf("answered after %s though nothing has changed", time.Since(begun))
	}
}

// bell is a queue that says when a task is looked at.
type bell struct {
	*queuetest.Queue
	rings chan struct{}
}

func (b bell) Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	select {
	case b.rings <- struct{}{}:
	default:
	}
	return b.Queue.Task(ctx, id)
}

func TestStopAnswersThoseWhoWait(t *testing.T) {
	t.Parallel()
	rings := make(chan struct{})
	w := start(t, setup{wrap: func(q *queuetest.Queue) everything { return bell{q, rings} }})
	answer := w.await("/v1/tasks/" + string(w.submit(run("fw*")).Task) + "?wait=60")
	<-rings
	events := w.listen("", nil)
	events.next() // it is open
	w.stop()
	if got := <-answer; got.Total != 3 {
		t.Errorf("got %+v", got)
	}
	for events.next() != "" {
	}
	if strings.Contains(w.log.String(), "cut off") {
		t.Errorf("those who wait were cut off: %s", w.log)
	}
}

func TestCancelNeedsNoBody(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := string(w.submit(run("fw*")).Task)
	var c jobs.Cancel
	if res := w.call("POST", "/v1/tasks/"+task+"/cancel", nil, &c); res.StatusCode != 200 || c.Ended != 3 {
		t.Errorf("got %s %+v", res.Status, c)
	}
	if res := w.call("POST", "/v1/tasks/"+task+"/cancel", nil, &c); res.StatusCode != 200 || c.Already != 3 {
		t.Errorf("again: %s %+v", res.Status, c)
	}
	if !strings.Contains(w.log.String(), "task cancelled") {
		t.Error("the log says nothing")
	}
}

// cancelledQueue has every task cancelled in the middle of its submit.
type cancelledQueue struct{ *queuetest.Queue }

func (q cancelledQueue) Submit(ctx context.Context, t jobs.Task, hosts map[string][]string, _ func(int)) error {
	return q.Queue.Submit(ctx, t, hosts, func(int) { q.Cancel(ctx, t.ID, "bob") })
}

// To submit a task again that was cancelled meanwhile is of no use: nobody is told to.
func TestASubmitThatWasCancelledIsRefused(t *testing.T) {
	t.Parallel()
	w := start(t, setup{wrap: func(q *queuetest.Queue) everything { return cancelledQueue{q} }})
	body := run("fw*")
	body.ID = string(jobs.NewTaskID(time.Now(), 7))
	for range 2 { // also if the first answer was lost
		var p problem
		if res := w.call("POST", "/v1/tasks", body, &p); res.StatusCode != 409 ||
			!strings.Contains(p.Detail, "cancelled while it was submitted: submit a new one") {
			t.Errorf("%s %+v", res.Status, p)
		}
	}
}
