package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"muster/jobs"
)

// openTerminal makes a terminal of some columns. stop hangs it up and returns
// everything that it was shown.
func openTerminal(t *testing.T, columns uint16) (tty *os.File, stop func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})); err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan string)
	go func() {
		var all bytes.Buffer
		_, _ = io.Copy(&all, master) // it ends with EIO when the terminal is hung up
		shown <- all.String()
	}()
	return tty, func() string {
		tty.Close()
		defer master.Close()
		return <-shown
	}
}

// musterOn runs a command on a terminal of 100 columns.
func musterOn(t *testing.T, url string, args ...string) (code int, shown string) {
	t.Helper()
	tty, stop := openTerminal(t, 100)
	root := newRoot()
	root.SetOut(tty)
	root.SetErr(tty)
	root.SetArgs(append(args, "--server", url))
	err := root.ExecuteContext(t.Context())
	var e *exitError
	if errors.As(err, &e) {
		code = e.code
	}
	return code, stop()
}

// TestOnATerminal is serial, for it sets the environment.
func TestOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	routes := lookRoutes()
	for route, h := range runRoutes(`"succeeded": 3, "failed": 1`) {
		routes[route] = h
	}

	code, shown := musterOn(t, newFakeAPI(t, routes).URL, "run", "exec", "--on", "all")
	if code != exitNotAll {
		t.Errorf("run: exit %d, want 1", code)
	}
	bar := eraseLine + "[------------------------------] 0/4   0% "
	wantParts(t, "run", shown, bar, "\x1b[32m3 succeeded\x1b[0m, \x1b[31m1 failed\x1b[0m", "  | hello")
	before, after, _ := strings.Cut(shown, "succeeded")
	if !strings.Contains(before, bar) || strings.Contains(after, bar) {
		t.Errorf("the bar is not taken away before the summary: %q", shown)
	}

	a := newFakeAPI(t, routes)
	if code, shown := musterOn(t, a.URL, "run", "exec", "--on", "all", "--detach"); code != 0 ||
		strings.Contains(shown, eraseLine) || len(a.requests()) != 1 {
		t.Errorf("run --detach: exit %d, %q, %v", code, shown, a.requests())
	}
	if _, shown := musterOn(t, a.URL, "logs", aJob); shown != "hello\\x1b[2J\\xff\r\n" {
		t.Errorf("logs: %q", shown)
	}
	if code, _ := musterOn(t, a.URL, "logs", aJob, "--raw"); code != exitUsage {
		t.Errorf("logs --raw: exit %d, want 2", code)
	}
	_, shown = musterOn(t, a.URL, "jobs", "--task", aTask)
	wantParts(t, "jobs", shown, "\x1b[32msucceeded\x1b[0m", "…")

	t.Setenv("NO_COLOR", "1")
	if _, shown := musterOn(t, a.URL, "jobs", "--task", aTask); strings.Contains(shown, "\x1b") {
		t.Errorf("colours in spite of NO_COLOR: %q", shown)
	}
	t.Setenv("TERM", "dumb")
	if _, shown := musterOn(t, newFakeAPI(t, routes).URL, "run", "exec", "--on", "all"); strings.Contains(shown, "\x1b") {
		t.Errorf("a dumb terminal got %q", shown)
	}
}

func TestQueueIsWatchedUntilItsEnd(t *testing.T) {
	t.Setenv("TERM", "xterm")
	look := lookRoutes()["GET /v1/queue"]
	a := newFakeAPI(t, map[string]http.HandlerFunc{"GET /v1/queue": inTurn(look, deny(404, `{"detail": "gone"}`))})
	code, shown := musterOn(t, a.URL, "queue", "--watch")
	if code != exitNotAll || strings.Count(shown, eraseScreen+"ZONE ") != 1 {
		t.Errorf("exit %d after %q", code, shown)
	}
}

func TestScreenKnowsItsWidth(t *testing.T) {
	t.Setenv("TERM", "xterm")
	tty, stop := openTerminal(t, 37)
	defer stop()
	c := &cobra.Command{}
	c.SetOut(tty)
	c.SetErr(io.Discard)
	s := newScreen(c)
	if !s.outTerm || s.errTerm || s.tableWidth() != 37 {
		t.Errorf("terminal out %v, err %v, %d columns, want true, false and 37", s.outTerm, s.errTerm, s.tableWidth())
	}
	if s.newDisplay() == nil || s.colours.outcome(jobs.Failed, "x") == "x" && os.Getenv("NO_COLOR") == "" {
		t.Error("a terminal without colours")
	}
}
