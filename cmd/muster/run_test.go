package main

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
)

// runRoutes is a server at which the task ends with these outcomes.
func runRoutes(outcomes string) map[string]http.HandlerFunc {
	ended := apitest.TaskJSON(jobs.TaskEnded, outcomes)
	accepted := strings.TrimSuffix(apitest.TaskJSON(jobs.TaskQueued, ""), "}") + `, "durable": "appendfsync always"}`
	return map[string]http.HandlerFunc{
		"POST /v1/tasks": apitest.Answer(accepted),
		"GET /v1/tasks/" + apitest.ATask: apitest.InTurn(apitest.Answer(apitest.TaskJSON(jobs.TaskRunning, "")),
			apitest.Answer(ended)),
		"GET /v1/tasks/" + apitest.ATask + "/summary": apitest.Answer(`{"task": ` + ended + `, "groups": [
			{"outcome": "succeeded", "exit_code": 0, "count": 4, "hosts": "fw[001-004]", "output": "aGVsbG8K"}]}`),
	}
}

func TestRunFollowsAndSumsUp(t *testing.T) {
	t.Parallel()
	for outcomes, want := range map[string]int{
		`"succeeded": 4`:                 cli.ExitOK,
		`"succeeded": 3, "failed": 1`:    cli.ExitNotAll,
		`"succeeded": 3, "cancelled": 1`: cli.ExitStopped,
	} {
		for _, wait := range [][]string{nil, {"--wait"}} {
			a := apitest.New(t, runRoutes(outcomes))
			args := append([]string{"run", "exec", "--on", "role=fw", "--arg", "cmd=uname -a", "--as", "alice"}, wait...)
			code, out, words := muster(t, a.URL, args...)
			if code != want {
				t.Errorf("%s: exit %d, want %d: %s", outcomes, code, want, words)
			}
			apitest.WantParts(t, "the output", out, "4 succeeded: fw[001-004]\n  | hello\n", "task "+apitest.ATask)
			apitest.WantParts(t, "standard error", words, "exec on 4 hosts for alice (unproven) (Redis: appendfsync always)")
			var b api.Submit
			a.Sent(t, "POST /v1/tasks", &b)
			if _, err := jobs.ParseTaskID(b.ID); err != nil || b.As != "alice" || b.Args["cmd"] != "uname -a" {
				t.Errorf("submitted %+v, %v", b, err)
			}
		}
	}
}

func TestRunInJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wait  bool
		state string
		code  int
	}{{true, "ended", cli.ExitNotAll}, {false, "queued", cli.ExitOK}} {
		a := apitest.New(t, runRoutes(`"succeeded": 3, "failed": 1`))
		args := []string{"run", "exec", "--on", "all", "-o", "json"}
		if c.wait {
			args = append(args, "--wait")
		}
		code, out, words := muster(t, a.URL, args...)
		if code != c.code || words != "" {
			t.Errorf("wait %v: exit %d, want %d; standard error %q, want none", c.wait, code, c.code, words)
		}
		d := json.NewDecoder(strings.NewReader(out))
		var got map[string]any
		if err := d.Decode(&got); err != nil || d.More() {
			t.Fatalf("wait %v: not exactly one object: %v\n%s", c.wait, err, out)
		}
		for _, key := range []string{"task", "runbook", "state", "total", "outcomes", "started", "finished", "seconds"} {
			if _, ok := got[key]; !ok {
				t.Errorf("wait %v: no key %q in %s", c.wait, key, out)
			}
		}
		if got["state"] != c.state || got["task"] != apitest.ATask {
			t.Errorf("wait %v: %s", c.wait, out)
		}
	}
}

func TestRunDetached(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, runRoutes(""))
	code, out, words := muster(t, a.URL, "run", "exec", "--on", "all", "--detach")
	if code != cli.ExitOK || out != apitest.ATask+"\n" || len(a.Requests()) != 1 {
		t.Errorf("exit %d, output %q, requests %v", code, out, a.Requests())
	}
	apitest.WantParts(t, "standard error", words, "muster task "+apitest.ATask+" --wait")
}

func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	plan := `{"task": "", "runbook": "exec", "operator": "alice", "total": 300, "outcomes": {}, "hosts": "fw[001-300]"}`
	a := apitest.New(t, map[string]http.HandlerFunc{"POST /v1/tasks": apitest.Answer(plan)})
	code, out, _ := muster(t, a.URL, "run", "exec", "--on", "role=fw", "--dry-run")
	if want := "would run exec on 300 hosts for alice (unproven): fw[001-300]\n"; code != 0 || out != want {
		t.Errorf("exit %d, output %q, want %q", code, out, want)
	}
	var b api.Submit
	if a.Sent(t, "POST /v1/tasks", &b); !b.DryRun || b.ID != "" {
		t.Errorf("submitted %+v", b)
	}
	if code, out, _ = muster(t, a.URL, "run", "exec", "--on", "role=fw", "--dry-run", "-o", "json"); code != 0 ||
		!strings.Contains(out, `"hosts": "fw[001-300]"`) {
		t.Errorf("in JSON: exit %d, %s", code, out)
	}
}

func TestRunWithoutASummary(t *testing.T) {
	t.Parallel()
	routes := runRoutes(`"succeeded": 3, "failed": 1`)
	routes["GET /v1/tasks/"+apitest.ATask+"/summary"] = apitest.Deny(503, `{"detail": "redis is away"}`)
	code, out, words := muster(t, apitest.New(t, routes).URL, "run", "exec", "--on", "all")
	if code != cli.ExitNotAll {
		t.Errorf("exit %d, want 1", code)
	}
	apitest.WantParts(t, "the output", out, "3 succeeded, 1 failed")
	apitest.WantParts(t, "standard error", words, "there is no summary: redis is away")
}

func TestRunEndings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		code   int
		words  []string
	}{
		{"mistakes", apitest.Deny(422, `{"detail": "2 mistakes", "errors": [{"location": "body.on", "message": "no host matches"},
			{"location": "body.args", "message": "argument \"cmd\" is missing"}]}`), cli.ExitUsage,
			[]string{"--on: no host matches\n--arg: argument \"cmd\" is missing\n"}},
		{"conflict", apitest.Deny(409, `{"detail": "task is there already"}`), cli.ExitUsage, []string{"there already"}},
		{"no token", apitest.Deny(401, `{"detail": "a token is needed"}`), cli.ExitUsage, []string{"MUSTER_TOKEN"}},
		{"a web site", apitest.Answer(`<html>`), cli.ExitUnreachable, []string{"something else", "muster up"}},
		{"Redis away", apitest.Deny(503, `{"detail": "redis is away"}`), cli.ExitNotAll, []string{"redis is away"}},
	} {
		a := apitest.New(t, map[string]http.HandlerFunc{"POST /v1/tasks": c.answer})
		code, out, words := muster(t, a.URL, "run", "exec", "--on", "all")
		if code != c.code || out != "" {
			t.Errorf("%s: exit %d, want %d; output %q", c.name, code, c.code, out)
		}
		apitest.WantParts(t, c.name, words, c.words...)
	}
}

func TestRunInterruptedWhileItSubmits(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := apitest.New(t, map[string]http.HandlerFunc{"POST /v1/tasks": func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}})
	code, _, words := musterWith(ctx, a.URL, "run", "exec", "--on", "all", "--id", apitest.ATask)
	if code != cli.ExitInterrupted {
		t.Errorf("exit %d, want 130", code)
	}
	apitest.WantParts(t, "standard error", words, "not known whether task "+apitest.ATask+" was accepted",
		"--id "+apitest.ATask)
}

func TestRunInterruptedWhileItFollows(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	routes := runRoutes("")
	routes["GET /v1/tasks/"+apitest.ATask] = func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}
	code, out, words := musterWith(ctx, apitest.New(t, routes).URL, "run", "exec", "--on", "all")
	if code != cli.ExitInterrupted || out != "" {
		t.Errorf("exit %d, want 130; output %q", code, out)
	}
	apitest.WantParts(t, "standard error", words, "task "+apitest.ATask+" runs on", "muster cancel "+apitest.ATask)
}

func TestRunAgainstNobody(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, nil)
	a.Close()
	code, _, words := muster(t, a.URL, "run", "exec", "--on", "all", "--wait")
	if code != cli.ExitUnreachable {
		t.Errorf("exit %d, want 3", code)
	}
	apitest.WantParts(t, "standard error", words, a.URL, "muster up")
}
