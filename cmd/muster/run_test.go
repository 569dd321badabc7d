package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/jobs"
)

func TestSubmitBody(t *testing.T) {
	t.Parallel()
	zurich, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, zurich)
	f := runFlags{on: "role=fw", id: aTask, expire: "90m", at: "2026-12-01 02:00", dry: true,
		args:  []string{"cmd=echo a=b; $(x) 'q'\n-n", "empty=", "dash=-rf"},
		files: []string{"rules=/etc/rules", "none=/dev/null"}}
	got, err := f.submit("firewall", now, func(path string) ([]byte, error) {
		if path == "/dev/null" {
			return []byte{}, nil
		}
		return []byte("content of " + path), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := api.Submit{ID: aTask, Runbook: "firewall", On: "role=fw", Expire: "90m", DryRun: true,
		At:    jobs.Time{Time: time.Date(2026, 12, 1, 1, 0, 0, 0, time.UTC)},
		Args:  map[string]string{"cmd": "echo a=b; $(x) 'q'\n-n", "empty": "", "dash": "-rf"},
		Files: map[string][]byte{"rules": []byte("content of /etc/rules"), "none": {}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSubmitBodyReportsAllMistakes(t *testing.T) {
	t.Parallel()
	f := runFlags{id: "X", expire: "soon", at: "tomorrow", args: []string{"cmd", "=x", "a=1", "a=2"},
		files: []string{"f=/no/such/file", "a=/dev/null", "g"}}
	_, err := f.submit("exec", time.Now(), func(string) ([]byte, error) { return nil, os.ErrNotExist })
	if err == nil {
		t.Fatal("no error")
	}
	want := []string{"no hosts are named", `--id: task id "X"`, `--expire "soon"`, `--at "tomorrow"`,
		`--arg "cmd": want name=value`, `--arg "=x": there is no name`, `--arg "a": this argument was given already`,
		"--arg-file f: file does not exist", `--arg-file "a": this argument was given already`, `--arg-file "g": want`}
	wantParts(t, "the error", err.Error(), want...)
	if n := strings.Count(err.Error(), "\n") + 1; n != len(want) {
		t.Errorf("%d lines, want %d:\n%v", n, len(want), err)
	}
}

func TestParseAt(t *testing.T) {
	t.Parallel()
	zurich, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, zurich)
	for text, want := range map[string]string{
		"":                          "0001-01-01T00:00:00Z",
		"+90m":                      "2026-11-21T10:30:00Z",
		"+0s":                       "2026-11-21T09:00:00Z",
		"2026-12-01T02:00:00Z":      "2026-12-01T02:00:00Z",
		"2026-12-01T02:00:00+02:00": "2026-12-01T00:00:00Z",
		"2026-12-01 02:00":          "2026-12-01T01:00:00Z",
		"2026-07-01 02:00:30":       "2026-07-01T00:00:30Z",
		"2026-12-01":                "2026-11-30T23:00:00Z", // the day begins
		"+-5m":                      "", "90m": "", "02:00": "", "2026-02-30": "", "2026-13-01 02:00": "", "now": "",
	} {
		got, err := parseAt(text, now)
		if want == "" {
			if err == nil {
				t.Errorf("parseAt(%q) = %s, want an error", text, got)
			}
			continue
		}
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("parseAt(%q) = %s, %v, want %s", text, got.UTC().Format(time.RFC3339), err, want)
		}
	}
}

func TestReadArgFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("a\x00b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := readArgFile(t.Context(), path); err != nil || string(got) != "a\x00b\n" {
		t.Errorf("got %q, %v", got, err)
	}
	for path, words := range map[string]string{
		"/dev/zero": "is a device", filepath.Dir(path): "is a folder", path + "x": "no such file"} {
		if _, err := readArgFile(t.Context(), path); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %v, want %q", path, err, words)
		}
	}
}

// runRoutes is a server at which the task ends as it is told.
func runRoutes(outcomes string) map[string]http.HandlerFunc {
	ended := taskJSON(jobs.TaskEnded, outcomes)
	accepted := strings.TrimSuffix(taskJSON(jobs.TaskQueued, ""), "}") + `, "durable": "appendfsync always"}`
	return map[string]http.HandlerFunc{
		"POST /v1/tasks":         answer(accepted),
		"GET /v1/tasks/" + aTask: inTurn(answer(taskJSON(jobs.TaskRunning, "")), answer(ended)),
		"GET /v1/tasks/" + aTask + "/summary": answer(`{"task": ` + ended + `, "groups": [
			{"outcome": "succeeded", "exit_code": 0, "count": 4, "hosts": "fw[001-004]", "output": "aGVsbG8K"}]}`),
	}
}

func TestRunFollowsAndSumsUp(t *testing.T) {
	t.Parallel()
	for outcomes, want := range map[string]int{
		`"succeeded": 4`:                 exitOK,
		`"succeeded": 3, "failed": 1`:    exitNotAll,
		`"succeeded": 3, "cancelled": 1`: exitStopped,
	} {
		for _, wait := range [][]string{nil, {"--wait"}} {
			a := newFakeAPI(t, runRoutes(outcomes))
			args := append([]string{"run", "exec", "--on", "role=fw", "--arg", "cmd=uname -a", "--as", "alice"}, wait...)
			code, out, words := muster(t, a.URL, args...)
			if code != want {
				t.Errorf("%s: exit %d, want %d: %s", outcomes, code, want, words)
			}
			wantParts(t, "the output", out, "4 succeeded: fw[001-004]\n  | hello\n", "task "+aTask)
			wantParts(t, "standard error", words, "exec on 4 hosts for alice (unproven) (Redis: appendfsync always)")
			var b api.Submit
			a.sent(t, "POST /v1/tasks", &b)
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
	}{{true, "ended", exitNotAll}, {false, "queued", exitOK}} {
		a := newFakeAPI(t, runRoutes(`"succeeded": 3, "failed": 1`))
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
		if got["state"] != c.state || got["task"] != aTask {
			t.Errorf("wait %v: %s", c.wait, out)
		}
	}
}

func TestRunDetached(t *testing.T) {
	t.Parallel()
	a := newFakeAPI(t, runRoutes(""))
	code, out, words := muster(t, a.URL, "run", "exec", "--on", "all", "--detach")
	if code != exitOK || out != aTask+"\n" || len(a.requests()) != 1 {
		t.Errorf("exit %d, output %q, requests %v", code, out, a.requests())
	}
	wantParts(t, "standard error", words, "muster task "+aTask+" --wait")
}

func TestDryRunChangesNothing(t *testing.T) {
	t.Parallel()
	plan := `{"task": "", "runbook": "exec", "operator": "alice", "total": 300, "outcomes": {}, "hosts": "fw[001-300]"}`
	a := newFakeAPI(t, map[string]http.HandlerFunc{"POST /v1/tasks": answer(plan)})
	code, out, _ := muster(t, a.URL, "run", "exec", "--on", "role=fw", "--dry-run")
	if want := "would run exec on 300 hosts for alice (unproven): fw[001-300]\n"; code != 0 || out != want {
		t.Errorf("exit %d, output %q, want %q", code, out, want)
	}
	var b api.Submit
	if a.sent(t, "POST /v1/tasks", &b); !b.DryRun || b.ID != "" {
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
	routes["GET /v1/tasks/"+aTask+"/summary"] = deny(503, `{"detail": "redis is away"}`)
	code, out, words := muster(t, newFakeAPI(t, routes).URL, "run", "exec", "--on", "all")
	if code != exitNotAll {
		t.Errorf("exit %d, want 1", code)
	}
	wantParts(t, "the output", out, "3 succeeded, 1 failed")
	wantParts(t, "standard error", words, "there is no summary: redis is away")
}

func TestRunEndings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		code   int
		words  []string
	}{
		{"mistakes", deny(422, `{"detail": "2 mistakes", "errors": [{"location": "body.on", "message": "no host matches"},
			{"location": "body.args", "message": "argument \"cmd\" is missing"}]}`), exitUsage,
			[]string{"--on: no host matches\n--arg: argument \"cmd\" is missing\n"}},
		{"conflict", deny(409, `{"detail": "task is there already"}`), exitUsage, []string{"there already"}},
		{"no token", deny(401, `{"detail": "a token is needed"}`), exitUsage, []string{"MUSTER_TOKEN"}},
		{"a web site", answer(`<html>`), exitUnreachable, []string{"something else", "muster up"}},
		{"Redis away", deny(503, `{"detail": "redis is away"}`), exitNotAll, []string{"redis is away"}},
	} {
		a := newFakeAPI(t, map[string]http.HandlerFunc{"POST /v1/tasks": c.answer})
		code, out, words := muster(t, a.URL, "run", "exec", "--on", "all")
		if code != c.code || out != "" {
			t.Errorf("%s: exit %d, want %d; output %q", c.name, code, c.code, out)
		}
		wantParts(t, c.name, words, c.words...)
	}
}

func TestRunInterruptedWhileItSubmits(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	a := newFakeAPI(t, map[string]http.HandlerFunc{"POST /v1/tasks": func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}})
	code, _, words := musterWith(ctx, a.URL, "run", "exec", "--on", "all", "--id", aTask)
	if code != exitInterrupted {
		t.Errorf("exit %d, want 130", code)
	}
	wantParts(t, "standard error", words, "not known whether task "+aTask+" was accepted", "--id "+aTask)
}

func TestRunInterruptedWhileItFollows(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	routes := runRoutes("")
	routes["GET /v1/tasks/"+aTask] = func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}
	code, out, words := musterWith(ctx, newFakeAPI(t, routes).URL, "run", "exec", "--on", "all")
	if code != exitInterrupted || out != "" {
		t.Errorf("exit %d, want 130; output %q", code, out)
	}
	wantParts(t, "standard error", words, "task "+aTask+" runs on", "muster cancel "+aTask)
}

func TestRunAgainstNobody(t *testing.T) {
	t.Parallel()
	a := newFakeAPI(t, nil)
	a.Close()
	code, _, words := muster(t, a.URL, "run", "exec", "--on", "all", "--wait")
	if code != exitUnreachable {
		t.Errorf("exit %d, want 3", code)
	}
	wantParts(t, "standard error", words, a.URL, "muster up")
}
