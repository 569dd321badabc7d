package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

func TestListsSayWhatStandsStill(t *testing.T) {
	t.Parallel()
	routes := lookRoutes()
	routes["GET /v1/pauses"] = apitest.Answer(`{"halted": "halted by bob\u001b: fire",
		"zones": {"z2": "paused by alice"}, "customers": {"acme": "paused by carol"}, "tasks": {}}`)
	a := apitest.New(t, routes)
	want := "everything is halted by bob\\x1b: fire\nzone z2 is paused by alice\ncustomer acme is paused by carol\n"
	for _, line := range []string{"queue", "tasks", "nodes"} {
		code, out, words := muster(t, a.URL, line)
		want := want
		if line == "nodes" {
			want += "zone default is frozen until 2026-11-21 10:05:00Z, 0.0s left: another run id\n"
		}
		if code != 0 || words != want || out == "" {
			t.Errorf("muster %s: exit %d, says %q, want %q", line, code, words, want)
		}
		if _, _, words := muster(t, a.URL, line, "-o", "json"); words != "" {
			t.Errorf("muster %s -o json says %q", line, words)
		}
	}
	routes["GET /v1/pauses"] = apitest.Deny(404, `{"detail": "there is no /v1/pauses"}`)
	a = apitest.New(t, routes)
	if code, _, words := muster(t, a.URL, "tasks"); code != 0 || words != "" {
		t.Errorf("of a server that knows no pauses: exit %d, %q", code, words)
	}
}

// A command that continues a task shows what still keeps it. Orders about the task itself are shown
// with the task, and an ended task waits for nothing.
func TestATaskSaysWhatKeepsIt(t *testing.T) {
	t.Parallel()
	routes := lookRoutes()
	routes["GET /v1/pauses"] = apitest.Answer(`{"halted": "halted by bob\u001b: fire", "zones": {},
		"customers": {"acme": "paused by carol"}, "tasks": {"` + apitest.ATask + `": "paused by alice"}}`)
	a := apitest.New(t, routes)
	if code, _, words := muster(t, a.URL, "task", apitest.ATask); code != 0 || words != "" {
		t.Errorf("of a task that has ended: exit %d, says %q", code, words)
	}
	paused := strings.Replace(apitest.TaskJSON(jobs.TaskPaused, ""), "{", `{"paused": "paused by alice",`, 1)
	routes["GET /v1/tasks/"+apitest.ATask+"/summary"] = apitest.Answer(`{"task": ` + paused + `, "groups": null}`)
	a = apitest.New(t, routes)
	code, out, words := muster(t, a.URL, "task", apitest.ATask)
	want := "waits: everything is halted by bob\\x1b: fire\nwaits: customer acme is paused by carol\n"
	if code != 0 || words != want || strings.Count(out, "paused by alice") != 1 {
		t.Errorf("exit %d, %q, says %q, want %q", code, out, words, want)
	}
	if _, _, words := muster(t, a.URL, "task", apitest.ATask, "-o", "json"); words != "" {
		t.Errorf("-o json says %q", words)
	}
}

func TestAnOrderThatMayStandIsSaidToBeUnknown(t *testing.T) {
	t.Parallel()
	away := `{"detail": "redis r: halt: the server does not answer in time"}`
	for line, route := range map[string]string{
		"halt --reason x":         "POST /v1/halt",
		"resume --all --reason x": "POST /v1/lift",
		"cancel " + apitest.ATask: "POST /v1/tasks/" + apitest.ATask + "/cancel",
	} {
		for status, want := range map[int]bool{503: true, 409: false} {
			a := apitest.New(t, map[string]http.HandlerFunc{route: apitest.Deny(status, away)})
			code, _, words := muster(t, a.URL, strings.Fields(line)...)
			said := strings.Contains(words, "it is not known whether the server took the order: give it again")
			if code == 0 || said != want {
				t.Errorf("muster %s, answered %d: exit %d, %q", line, status, code, words)
			}
		}
	}
	if _, _, words := muster(t, "http://127.0.0.1:1", "halt", "--reason", "x"); strings.Contains(words, "not known") {
		t.Errorf("a server that never heard the order: %q", words)
	}
}

func TestOrdersSayWhoAndWhy(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, lookRoutes())
	for line, route := range map[string]string{
		"pause " + apitest.ATask:    "POST /v1/tasks/" + apitest.ATask + "/pause",
		"pause --customer acme":     "POST /v1/customers/acme/pause",
		"resume --zone z2":          "POST /v1/zones/z2/resume",
		"halt":                      "POST /v1/halt",
		"resume --all":              "POST /v1/lift",
		"group clear g1":            "POST /v1/groups/g1/clear",
		"nodes thaw --zone default": "POST /v1/zones/default/thaw",
	} {
		code, _, words := muster(t, a.URL, append(strings.Fields(line), "--reason", "fire, fire", "--as", "bob")...)
		var got map[string]string
		a.Sent(t, route, &got)
		if want := map[string]string{"reason": "fire, fire", "as": "bob"}; code != 0 || !cmp.Equal(got, want) {
			t.Errorf("muster %s: exit %d, %s; sent %v, want %v", line, code, words, got, want)
		}
	}
}

func TestThawWithoutAZoneThawsThoseThatAreFrozen(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, lookRoutes())
	muster(t, a.URL, "nodes", "thaw", "--reason", "x")
	if diff := cmp.Diff([]string{"GET /v1/queue", "POST /v1/zones/default/thaw"}, a.Requests()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	a = apitest.New(t, map[string]http.HandlerFunc{"GET /v1/queue": apitest.Answer(`{"zones": [{"zone": "z"}]}`)})
	if code, out, words := muster(t, a.URL, "nodes", "thaw", "--reason", "x"); code != 0 || out != "" ||
		words != "no zone is frozen\n" {
		t.Errorf("nothing is frozen: exit %d, %q, %q", code, out, words)
	}
}

func TestCancelOfJobs(t *testing.T) {
	t.Parallel()
	running := apitest.Answer(`{"jobs": [
		{"id": "0wcy7y2fb2:fw001", "host": "fw001", "state": "running", "attempt": 1},
		{"id": "0wcy7y2fb2:fw002", "host": "fw002", "state": "running", "attempt": 1},
		{"id": "0wcy7y2fb2:fw003", "host": "fw003", "state": "running", "attempt": 1}]}`)
	ended := apitest.Answer(`{"jobs": [
		{"id": "0wcy7y2fb2:fw001", "host": "fw001", "state": "ended", "outcome": "cancelled", "attempt": 1},
		{"id": "0wcy7y2fb2:fw002", "host": "fw002", "state": "ended", "outcome": "unknown", "attempt": 1,
		 "error": "cancel requested, still\nrunning"},
		{"id": "0wcy7y2fb2:fw003", "host": "fw003", "state": "running", "attempt": 1}]}`)
	routes := lookRoutes()
	routes["GET /v1/tasks/"+apitest.ATask+"/jobs"] = apitest.InTurn(running, ended)
	routes["POST /v1/tasks/"+apitest.ATask+"/cancel"] = apitest.Answer(`{"task": "` + apitest.ATask +
		`", "ended": 0, "running": 2, "already": 0}`)
	a := apitest.New(t, routes)
	code, out, words := muster(t, a.URL, "cancel", apitest.AJob, apitest.ATask+":fw002", "--wait")
	want := "task 0wcy7y2fb2: 0 jobs cancelled, 2 running: they are stopped on their hosts; its other jobs continue\n" +
		"of those that ran: 1 unknown, 1 cancelled\n  0wcy7y2fb2:fw002: unknown, cancel requested, still\\nrunning\n"
	if code != cli.ExitNotAll || out != want {
		t.Errorf("exit %d, %s\ngot  %q\nwant %q", code, words, out, want)
	}
	var sent api.CancelRequest
	a.Sent(t, "POST /v1/tasks/"+apitest.ATask+"/cancel", &sent)
	if !cmp.Equal(sent.Jobs, []jobs.ID{apitest.AJob, apitest.ATask + ":fw002"}) {
		t.Errorf("sent %+v", sent)
	}
	if code, _, words := muster(t, a.URL, "cancel", apitest.AJob, "--wait", "-o", "json"); code != cli.ExitOK {
		t.Errorf("of one that was stopped: exit %d, %s", code, words)
	}
	if code, _, words := muster(t, a.URL, "cancel", apitest.ATask+":fw002", "-o", "json"); code != cli.ExitOK {
		t.Errorf("without --wait: exit %d, %s", code, words)
	}
}

func TestRetryMakesATaskAndFollowsIt(t *testing.T) {
	t.Parallel()
	const route = "POST /v1/tasks/" + apitest.ATask + "/retry"
	queued := apitest.TaskJSON(jobs.TaskQueued, "")
	routes := lookRoutes()
	routes[route] = apitest.InTurn(apitest.HangUp, apitest.Answer(strings.Replace(queued, "{",
		`{"open": 2, "skipped": "fw[7-8]",`, 1)))
	routes["GET /v1/tasks/"+apitest.ATask] = apitest.Answer(apitest.TaskJSON(jobs.TaskEnded,
		`"succeeded": 3, "failed": 1`))
	a := apitest.New(t, routes)
	code, out, words := muster(t, a.URL, "retry", apitest.ATask, "--failed", "--outcome", "unreachable,failed",
		"--skip-missing", "--as", "bob")
	if code != 0 || out != apitest.ATask+"\n" {
		t.Errorf("exit %d, %q", code, out)
	}
	apitest.WantParts(t, "the words", words, "no answer, trying again",
		"task "+apitest.ATask+": 2 jobs have not ended: left out",
		"left out: fw[7-8]", "exec on 4 hosts")
	var sent api.RetryRequest
	a.Sent(t, route, &sent)
	if !cmp.Equal(sent.Outcomes, []jobs.Outcome{jobs.Failed, jobs.Unreachable}) || !sent.SkipMissing ||
		sent.As != "bob" || len(sent.ID) != 10 {
		t.Errorf("sent %+v", sent)
	}
	if code, out, _ := muster(t, a.URL, "retry", apitest.ATask, "--failed", "--wait"); code != cli.ExitNotAll ||
		!strings.Contains(out, "3 succeeded, 1 failed") && !strings.Contains(out, "4 succeeded") {
		t.Errorf("--wait: exit %d, %q", code, out)
	}
	code, out, _ = muster(t, a.URL, "retry", apitest.ATask, "--failed", "--dry-run")
	a.Sent(t, route, &sent)
	if code != 0 || !strings.HasPrefix(out, "would run exec on 4 hosts") || !sent.DryRun {
		t.Errorf("--dry-run: exit %d, %q, sent %+v", code, out, sent)
	}
}

func TestWaitGivesUpWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	const over = "task " + apitest.ATask + " has not ended after 200ms: "
	queued, waits := apitest.TaskJSON(jobs.TaskQueued, ""),
		`{"waits": [{"why": "group g\u001b is frozen", "hosts": "fw[1-4]"}]}`
	for _, c := range []struct{ task, pauses, waits, want string }{
		{strings.Replace(queued, `"running": 0`, `"running": 2`, 1), `{}`, `{}`, "it runs on"},
		{queued, `{}`, `{}`, "none of its jobs runs; it waits: for their time, or for a worker"},
		{queued, `{"halted": "halted by bob\u001b: fire"}`, waits,
			`none of its jobs runs; it waits: everything is halted by bob\x1b: fire; fw[1-4]: group g\x1b is frozen`},
		{queued, `{"tasks": {"` + apitest.ATask + `": "paused by alice"}}`, `{}`,
			"none of its jobs runs; it waits: task " + apitest.ATask + " is paused by alice"},
	} {
		a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/tasks/" + apitest.ATask: apitest.Answer(c.task),
			"GET /v1/pauses": apitest.Answer(c.pauses), "GET /v1/tasks/" + apitest.ATask + "/waits": apitest.Answer(c.waits)})
		for _, form := range []string{"table", "json"} {
			code, out, words := muster(t, a.URL, "wait", apitest.ATask, "--timeout", "200ms", "-o", form)
			if code != cli.ExitNotAll || !strings.HasSuffix(words, over+c.want+"\n") {
				t.Errorf("exit %d, %q, want %q", code, words, c.want)
			}
			var got jobs.TaskInfo
			if err := json.Unmarshal([]byte(out), &got); form == "json" && (err != nil || got.Task != apitest.ATask) ||
				form == "table" && out != "" {
				t.Errorf("-o %s: %q, %v", form, out, err)
			}
		}
	}
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/tasks/" + apitest.ATask: apitest.Deny(503,
		`{"detail": "redis is away"}`)})
	code, out, words := muster(t, a.URL, "wait", apitest.ATask, "--timeout", "200ms", "-o", "json")
	if code != cli.ExitNotAll || out != "" || !strings.Contains(words,
		"it is not known whether task "+apitest.ATask+" has ended "+
			"after 200ms: redis is away") {
		t.Errorf("nothing was heard: exit %d, %q, %q", code, out, words)
	}
	a = apitest.New(t, map[string]http.HandlerFunc{"GET /v1/tasks/" + apitest.ATask: apitest.Answer(strings.Replace(
		apitest.TaskJSON(jobs.TaskEnded, `"cancelled": 4`), "{", `{"cancelled": "cancelled by bob",`, 1))})
	if code, _, words := muster(t, a.URL, "wait", apitest.ATask, "-o", "json"); code != cli.ExitStopped {
		t.Errorf("of a cancelled task: exit %d, %q", code, words)
	}
}

func TestRunSendsItsTerms(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"POST /v1/tasks": apitest.Answer(apitest.TaskJSON(jobs.TaskQueued,
		""))})
	code, _, words := muster(t, a.URL, "run", "exec", "--on", "fw001", "--arg", "cmd=true", "--disruptive",
		"--supersedes", "rules/acme", "--expire", "2h", "--detach")
	// The text may come from a variable of a shell that is not set.
	if code, _, words := muster(t, a.URL, "run", "exec", "--on", "fw001", "--supersedes", ""); code != cli.ExitUsage ||
		!strings.Contains(words, "--supersedes is empty") {
		t.Errorf("an empty key: exit %d, %s", code, words)
	}
	var sent api.Submit
	a.Sent(t, "POST /v1/tasks", &sent)
	if code != 0 || !sent.Disruptive || sent.Supersedes != "rules/acme" || sent.Expire != "2h" {
		t.Errorf("exit %d, %s; sent %+v", code, words, sent)
	}
}

func TestAJobSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	blocked := `{"id": "0wcy7y2fb2:fw001", "host": "fw001", "state": "blocked", "waits": "group/g\u001b",
		"why": "held by \u001b"}`
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/jobs/" + apitest.AJob: apitest.Answer(blocked),
		"GET /v1/tasks/" + apitest.ATask:           apitest.Answer(`{"task": "` + apitest.ATask + `"}`),
		"GET /v1/tasks/" + apitest.ATask + "/jobs": apitest.Answer(`{"jobs": [` + blocked + `]}`)})
	for _, line := range []string{"job " + apitest.AJob, "jobs --task " + apitest.ATask} {
		_, out, words := muster(t, a.URL, strings.Fields(line)...)
		if out = strings.Join(strings.Fields(out), " "); !strings.Contains(out, `waits for group/g\x1b`) ||
			line == "job "+apitest.AJob && !strings.Contains(out, `why held by \x1b`) {
			t.Errorf("muster %s: %q, %q", line, out, words)
		}
	}
}
