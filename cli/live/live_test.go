package live

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
	"muster/testkit/clitest"
)

// summary is the answer about a task with such counts; the group of hosts has a hostile text.
func summary(state jobs.TaskState, outcomes, more string) string {
	return `{"task": ` + strings.TrimSuffix(apitest.TaskJSON(state, outcomes), "}") + `, "rollout": {"waves": [1, 3],
		"wave": 2, "failed": 1, "begun": 1, "max_failed": 2}}, "groups": [], "at_gates": 0, "waits": [], "awaits": []` +
		more + `}`
}

// routes answer about a task that works, works still, waits and ends.
func routes() map[string]http.HandlerFunc {
	works := apitest.Answer(summary(jobs.TaskRunning, `"succeeded": 1`, ""))
	later := apitest.Answer(strings.Replace(summary(jobs.TaskRunning, `"succeeded": 1`, ""), "8.14", "9.15", 1))
	waits := apitest.Answer(summary(jobs.TaskRunning, `"succeeded": 2`, `,
		"waits": [{"why": "the group \u001b[31mred", "hosts": "fw003", "count": 1}]`))
	ended := apitest.Answer(summary(jobs.TaskEnded, `"succeeded": 3, "failed": 1`, ""))
	return map[string]http.HandlerFunc{
		"GET /v1/tasks/" + apitest.ATask:              apitest.Answer(apitest.TaskJSON(jobs.TaskRunning, "")),
		"GET /v1/tasks/" + apitest.ATask + "/summary": apitest.InTurn(works, later, waits, ended)}
}

// exitOf returns the exit code that an error stands for.
func exitOf(t *testing.T, err error) int {
	t.Helper()
	var x *cli.ExitError
	if !errors.As(err, &x) {
		t.Fatalf("no exit code: %v", err)
	}
	return x.Code
}

// A watched task is a line for each change, as text or JSON, and ends with the task and its exit code.
func TestAWatchedTaskIsALineForEachChange(t *testing.T) {
	t.Parallel()
	for _, asJSON := range []bool{false, true} {
		s, out, _ := clitest.NewSession(clitest.NewClient(t, apitest.New(t, routes()).URL))
		s.JSON = asJSON
		if code := exitOf(t, show(t.Context(), s, apitest.ATask, time.Millisecond)); code != cli.ExitNotAll {
			t.Errorf("exit code %d", code)
		}
		text := out.String()
		if strings.Contains(text, "\x1b") {
			t.Errorf("a pipe got an escape: %q", text)
		}
		if !asJSON {
			lines := strings.SplitN(text, "\n", 4)
			apitest.WantParts(t, "first line", lines[0], "task 0wcy7y2fb2 is running: 1 of 4 ended, 1 succeeded, 3 waiting",
				"waves: 1 over | 3 now", "budget: 1 failed, 2 may; 1 begun")
			apitest.WantParts(t, "second line", lines[1], "2 of 4 ended", `1 waiting: fw003 the group \x1b[31mred`)
			apitest.WantParts(t, "third line", lines[2], "is ended: 4 of 4 ended, 3 succeeded, 1 failed")
			apitest.WantParts(t, "summary", lines[3], "task 0wcy7y2fb2: exec on 4 hosts")
			continue
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines, want one for each change:\n%s", len(lines), text)
		}
		var f Facts
		if err := json.Unmarshal([]byte(lines[1]), &f); err != nil || f.Task.Outcomes[jobs.Succeeded] != 2 ||
			len(f.Waits) != 1 {
			t.Errorf("%v: %+v", err, f)
		}
	}
}

// On a terminal the task is a picture that fits it; each outcome has a sign, and a part for one job
// of thousands.
func TestAPictureOfATaskFitsTheTerminal(t *testing.T) {
	t.Parallel()
	most := 5
	f := Facts{Task: jobs.TaskInfo{Task: "0wcy7y2fb2", Runbook: "exec", Operator: "alice\x1b[2J", State: jobs.TaskRunning,
		Total: 20000, Running: 200, Outcomes: jobs.Counts{jobs.Succeeded: 12000, jobs.Failed: 1}},
		Stands: []string{"zone eu is paused by ops: a move"}}
	f.Task.Rollout = &jobs.RolloutInfo{Wave: 3, Failed: 1, Begun: 200,
		Rollout: jobs.Rollout{Waves: []int{20, 2000, 17980}, Rule: jobs.Rule{MaxFailed: &most}}}
	for range 40 {
		f.Waits = append(f.Waits, jobs.Lack{Hosts: "fw[1-20]", Count: 20, Why: strings.Repeat("a long reason ", 20)})
	}
	for _, width := range []int{20, 40, 80, 200} {
		s := &cli.Screen{OutTerm: true, Width: func() int { return width }, Height: func() int { return 24 }}
		text := picture(s, f)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		for _, line := range lines {
			if len([]rune(line)) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		if len(lines) > 23 || strings.Contains(text, "\x1b") || !strings.Contains(text, "lines more") {
			t.Errorf("%d columns, %d lines:\n%s", width, len(lines), text)
		}
		bar := lines[4]
		if !strings.HasPrefix(bar, "[+") || strings.Count(bar, "x") != 1 || !strings.Contains(bar, ">") ||
			strings.Count(bar, "+") < strings.Count(bar, ".") {
			t.Errorf("%d columns: %q", width, bar)
		}
		if width < 80 {
			continue
		}
		apitest.WantParts(t, "picture", text, "+ 12000 succeeded  x 1 failed  > 200 running  . 7799 waiting",
			"waves: 20 over | 2000 over | 17980 now", "budget: 1 failed, 5 may; 200 begun",
			"waits: zone eu is paused by ops: a move")
	}
	if bar, _ := outcomeBar(jobs.TaskInfo{}, 40, false); bar != "[]" {
		t.Errorf("a task without jobs: %q", bar)
	}
}
