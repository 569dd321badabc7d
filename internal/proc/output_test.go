package proc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/proc"
)

func sh(dir, script string, most int) proc.Program {
	return proc.Program{Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir,
		Env: []string{"PATH=/usr/bin:/bin", "ONLY=this"}, Most: most}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text, err := proc.Output(t.Context(), sh(dir, "echo $ONLY $HOME; pwd; echo no >&2", 1000))
	if err != nil || string(text) != "this\n"+dir+"\n" {
		t.Errorf("%q, %v", text, err)
	}
	for script, want := range map[string]string{
		"echo out; echo why >&2; exit 3": "exit status 3: why",
		"kill -9 $$":                     "signal: killed",
		"echo 1234567890123456":          "prints more than 16 bytes",
		"exec yes":                       "prints more than 16 bytes",
		"printf %0600d 7 >&2; exit 1":    "exit status 1: " + strings.Repeat("0", 499) + "7",
	} {
		if text, err := proc.Output(t.Context(), sh(dir, script, 16)); err == nil || err.Error() != want {
			t.Errorf("%s: %q, %v; want %s", script, text, err, want)
		}
	}
	if text, err := proc.Output(t.Context(), sh(dir, "echo 123456789012345", 16)); err != nil || len(text) != 16 {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := proc.Output(t.Context(), proc.Program{Path: dir + "/none"}); err == nil {
		t.Error("no error")
	}
}

// When the time is over everything that the program has started is killed, too.
func TestOutputKillsTheGroup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, stop := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := proc.Output(ctx, sh(dir, "sleep 1000 & echo $! > pid.new; mv pid.new pid; wait", 16))
		ended <- err
	}()
	pid := 0
	for range time.Tick(10 * time.Millisecond) {
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		if pid, _ = strconv.Atoi(strings.TrimSpace(string(text))); pid > 0 {
			break
		}
	}
	stop(fmt.Errorf("too late"))
	if err := <-ended; err == nil || err.Error() != "too late" {
		t.Error(err)
	}
	deadline := time.After(20 * time.Second)
	for range time.Tick(10 * time.Millisecond) {
		if syscall.Kill(pid, 0) != nil || zombie(pid) {
			return
		}
		select {
		case <-deadline:
			t.Fatal("its child lives on")
		default:
		}
	}
}

// zombie reports whether a process is dead and its parent has not reaped it.
func zombie(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	return strings.HasPrefix(rest, "Z")
}
