package main

import (
	"net/http"
	"strings"
	"testing"

	"muster/cli"
	"muster/testkit/apitest"
)

func TestAJobThatRunsIsSaidToRun(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/jobs/" + apitest.AJob + "/output": apitest.Part("half", 4,
		false)})
	_, out, words := muster(t, a.URL, "logs", apitest.AJob)
	if out != "half" || !strings.Contains(words, "muster logs -f "+apitest.AJob) {
		t.Errorf("%q, %q", out, words)
	}
}

func TestLogsRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"logs", "nothing is named"},
		{"logs x", "task id"},
		{"logs x:y", "job id"},
		{"logs --fold " + apitest.AJob, "name the task, " + apitest.ATask},
		{"logs --diff " + apitest.AJob, "name the task"},
		{"logs --raw --fold " + apitest.ATask, "--raw and --fold"},
		{"logs --raw -o json " + apitest.ATask, "no JSON"},
	} {
		code, out, words := muster(t, "http://127.0.0.1:1", strings.Fields(c.args)...)
		if code != cli.ExitUsage || out != "" || !strings.Contains(words, c.want) {
			t.Errorf("muster %s: exit %d, %q, %q", c.args, code, out, words)
		}
	}
}

func TestATaskThatIsNotThereHasNoLogs(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{
		"GET /v1/tasks/" + apitest.ATask + "/output":    apitest.Deny(404, `{"detail": "task x: not found"}`),
		"GET /v1/tasks/" + apitest.ATask + "/summary":   apitest.Deny(404, `{"detail": "task x: not found"}`),
		"GET /v1/tasks/" + apitest.ATask + "/summaries": apitest.Deny(404, `{"detail": "task x: not found"}`),
	})
	for _, flags := range []string{"", "-f", "--fold", "--fold -f"} {
		code, out, words := muster(t, a.URL, append(strings.Fields("logs "+flags), apitest.ATask)...)
		if code != cli.ExitNotAll || out != "" || !strings.Contains(words, "not found") {
			t.Errorf("%s: exit %d, %q, %q", flags, code, out, words)
		}
	}
}

func TestWhereNothingIsSaidThatIsSaid(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"running": "muster logs -f " + apitest.ATask, "ended": "no host of task"} {
		a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/tasks/" + apitest.ATask + "/output": apitest.StreamOf(
			"event: over\ndata: {\"state\": \"" + state + "\"}\n\n")})
		if code, out, words := muster(t, a.URL, "logs", apitest.ATask); code != 0 || out != "" || !strings.Contains(words,
			want) {
			t.Errorf("%s: exit %d, %q, %q", state, code, out, words)
		}
	}
}

func TestHostsHaveColoursOnATerminalOnly(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	_, shown := musterOn(t, apitest.New(t, apitest.TailRoutes()).URL, "logs", "-f", apitest.ATask)
	prefix := cli.Palette(true).Host("fw1", "fw1:")
	if !strings.HasPrefix(prefix, "\x1b[") {
		t.Errorf("the prefix is %q", prefix)
	}
	apitest.WantParts(t, "the terminal", shown, prefix+" hello\r\n", "\\x1b[2Jtwo\r\n")
	_, out, _ := muster(t, apitest.New(t, apitest.TailRoutes()).URL, "logs", "-f", apitest.ATask)
	if strings.Contains(out, "\x1b") {
		t.Errorf("a pipe got colours, or what a host says: %q", out)
	}
	if code, _ := musterOn(t, "http://127.0.0.1:1", "logs", "--raw", apitest.ATask); code != cli.ExitUsage {
		t.Errorf("logs --raw of a task on a terminal: exit %d", code)
	}
}
