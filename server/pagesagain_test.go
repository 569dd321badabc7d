package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/jobs"
)

// finishTask works until a task has ended; the hosts in bad fail. The limit of the test ends a wait
// in vain.
func (w *world) finishTask(task string, bad map[string]bool) (info jobs.TaskInfo) {
	w.t.Helper()
	for info.State != jobs.TaskEnded {
		w.work("default", func(host string) jobs.Result {
			r := succeed(host)
			if bad[host] {
				r.Outcome, r.ExitCode = jobs.Failed, new(3)
			}
			return r
		})
		w.call("GET", "/v1/tasks/"+task+"?wait=1s", nil, &info)
	}
	return info
}

// taskAt returns the task to whose page an answer leads.
func (w *world) taskAt(res *http.Response) string {
	w.t.Helper()
	to := res.Header.Get("Location")
	id, is := strings.CutPrefix(to, "/tasks/")
	id, _, _ = strings.Cut(id, "?")
	if !is || id == "" {
		w.t.Fatalf("%s leads to %q", res.Status, to)
	}
	return id
}

// TestARunOfAllAndThenOfThoseThatFailed goes from the form of a run over its plan and its waves to
// the end, and does those again that failed: all by the pages.
func TestARunOfAllAndThenOfThoseThatFailed(t *testing.T) {
	t.Parallel()
	hosts, failing := 20000, map[string]bool{"h00003": true, "h00777": true, "h01999": true}
	if testing.Short() {
		hosts = 2000
	}
	w := start(t, bigWorld(t, hosts))
	begun := time.Now()
	form := url.Values{"on": {"all"}, "arg.cmd": {"true"}, "waves": {"1, 10%, 100%"}, "max_failed": {"9"}}
	_, plan := w.post("/run/exec", form, nil)
	if !strings.Contains(plan, "Plan: exec on "+strconv.Itoa(hosts)+" hosts") {
		t.Fatalf("no plan:\n%s", plan)
	}
	planned := time.Since(begun)
	shown := hidden(plan)
	shown.Set("go", "1")
	if res, text := w.post("/run/exec", shown, nil); res.StatusCode < 400 ||
		!strings.Contains(text, "type "+strconv.Itoa(hosts)) {
		t.Errorf("without the number: %s", res.Status)
	}
	shown.Set("typed", strconv.Itoa(hosts))
	res, _ := w.post("/run/exec", shown, nil)
	task := w.taskAt(res)
	info := w.finishTask(task, failing)
	if info.Outcomes[jobs.Failed] != 3 || info.Outcomes[jobs.Succeeded] != hosts-3 || len(info.Rollout.Waves) != 3 {
		t.Fatalf("it ended with %v, %+v", info.Outcomes, info.Rollout)
	}
	_, page := w.page("/tasks/"+task, nil)
	for _, want := range []string{"<strong>ended</strong>", "Waves and budget",
		"/tasks/" + task + "/order/retry", "/run/exec?like=" + task} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the task does not have %q", want)
		}
	}

	_, same := w.page("/run/exec?like="+task, nil)
	waves := fmt.Sprintf(`value="1, %d, 100%%"`, hosts/10)
	for _, want := range []string{`name="on" value="all"`, `name="arg.cmd"`, "true", waves, `value="9"`,
		"It does not have secrets, files, windows and times, whether it was a dry run"} {
		if !strings.Contains(same, want) {
			t.Errorf("the same again does not have %s:\n%s", want, same)
		}
	}
	_, ask := w.page("/tasks/"+task+"/order/retry", nil)
	again := hidden(ask)
	if again.Get("n") != "3" {
		t.Fatalf("those that failed are %q:\n%s", again.Get("n"), ask)
	}
	res, _ = w.post("/tasks/"+task+"/order/retry", again, nil)
	next := w.taskAt(res)
	if info = w.finishTask(next, nil); next == task || info.Total != 3 || info.Outcomes[jobs.Succeeded] != 3 {
		t.Fatalf("task %s after %s: %+v", next, task, info)
	}
	t.Logf("%d hosts: planned in %s, all in %s", hosts, planned.Round(time.Millisecond),
		time.Since(begun).Round(time.Millisecond))
}
