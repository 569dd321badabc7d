package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"muster/cli"
	"muster/cli/watch"
	"muster/testkit/apitest"
)

// musterOn runs a command on a terminal of 100 columns.
func musterOn(t *testing.T, url string, args ...string) (code int, shown string) {
	t.Helper()
	tty, stop := apitest.OpenTerminal(t, 100)
	root := newRoot()
	root.SetOut(tty)
	root.SetErr(tty)
	root.SetArgs(append(args, "--server", url))
	err := root.ExecuteContext(t.Context())
	var e *cli.ExitError
	if errors.As(err, &e) {
		code = e.Code
	}
	return code, stop()
}

// TestOnATerminal is serial, because it sets the environment.
func TestOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	routes := lookRoutes()
	for route, h := range runRoutes(`"succeeded": 3, "failed": 1`) {
		routes[route] = h
	}

	code, shown := musterOn(t, apitest.New(t, routes).URL, "run", "exec", "--on", "all")
	if code != cli.ExitNotAll {
		t.Errorf("run: exit %d, want 1", code)
	}
	bar := watch.EraseLine + "[------------------------------] 0/4   0% "
	apitest.WantParts(t, "run", shown, bar, "\x1b[32m3 succeeded\x1b[0m, \x1b[31m1 failed\x1b[0m", "  | hello")
	before, after, _ := strings.Cut(shown, "succeeded")
	if !strings.Contains(before, bar) || strings.Contains(after, bar) {
		t.Errorf("the bar is not taken away before the summary: %q", shown)
	}

	a := apitest.New(t, routes)
	if code, shown := musterOn(t, a.URL, "run", "exec", "--on", "all", "--detach"); code != 0 ||
		strings.Contains(shown, watch.EraseLine) || len(a.Requests()) != 1 {
		t.Errorf("run --detach: exit %d, %q, %v", code, shown, a.Requests())
	}
	if _, shown := musterOn(t, a.URL, "logs", apitest.AJob); shown != "hello\\x1b[2J\\xff\r\n" {
		t.Errorf("logs: %q", shown)
	}
	if code, _ := musterOn(t, a.URL, "logs", apitest.AJob, "--raw"); code != cli.ExitUsage {
		t.Errorf("logs --raw: exit %d, want 2", code)
	}
	_, shown = musterOn(t, a.URL, "jobs", "--task", apitest.ATask)
	apitest.WantParts(t, "jobs", shown, "\x1b[32msucceeded\x1b[0m", "…")

	t.Setenv("NO_COLOR", "1")
	if _, shown := musterOn(t, a.URL, "jobs", "--task", apitest.ATask); strings.Contains(shown, "\x1b") {
		t.Errorf("colours in spite of NO_COLOR: %q", shown)
	}
	t.Setenv("TERM", "dumb")
	if _, shown := musterOn(t, apitest.New(t, routes).URL, "run", "exec", "--on", "all"); strings.Contains(shown, "\x1b") {
		t.Errorf("a dumb terminal got %q", shown)
	}
}

func TestQueueIsWatchedUntilItsEnd(t *testing.T) {
	t.Setenv("TERM", "xterm")
	look := lookRoutes()["GET /v1/queue"]
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/queue": apitest.InTurn(look, apitest.Deny(404,
		`{"detail": "gone"}`))})
	code, shown := musterOn(t, a.URL, "queue", "--watch")
	if code != cli.ExitNotAll || strings.Count(shown, cli.EraseScreen+"ZONE ") != 1 {
		t.Errorf("exit %d after %q", code, shown)
	}
}
