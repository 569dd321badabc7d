package remote_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// toolsets are the systems that a host may be made of: whose sh and whose timeout
// come first in its PATH. The first is that of this machine.
func toolsets(t *testing.T) map[string]sshtest.Options {
	t.Helper()
	sets := map[string]sshtest.Options{"as it is": {}}
	for _, s := range []struct {
		name, binary string
		tools        []string
	}{
		{"bash", "bash", []string{"sh"}},
		{"mksh", "mksh", []string{"sh"}},
		{"busybox", "busybox", []string{"sh", "timeout", "sleep", "cat", "rm", "ps", "mv", "sha256sum"}},
	} {
		path, err := exec.LookPath(s.binary)
		if err != nil {
			continue
		}
		dir := t.TempDir()
		for _, tool := range s.tools {
			if err := os.Symlink(path, filepath.Join(dir, tool)); err != nil {
				t.Fatal(err)
			}
		}
		sets[s.name] = sshtest.Options{Config: []string{
			fmt.Sprintf("SetEnv PATH=%s:/usr/bin:/bin HOME=%s", dir, dir)}}
	}
	return sets
}

func TestRealStop(t *testing.T) {
	t.Parallel()
	for system, options := range toolsets(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			sshd := sshtest.StartSSHD(t, options)
			conn := connect(t, sshd.Host)
			for _, test := range []struct {
				name  string
				shell string // NAP is a length of time that nobody else sleeps
				naps  int
				code  int  // -1: any that is not 0
				more  bool // not on each system
			}{
				{"a command", "exec sleep NAP", 1, -1, false},
				{"one that ignores TERM", `trap "" TERM; while :; do sleep NAP; done`, 1, -1, false},
				{"one that ends in its own way", `trap 'exit 3' TERM; sleep NAP & wait`, 1, 3, true},
				{"one that ends well", `trap 'exit 0' TERM; sleep NAP & wait`, 1, 0, true},
				{"a pipeline with grandchildren", `sh -c "sleep NAP & sleep NAP; :" | (sleep NAP; cat)`, 3, -1, false},
				{"children in the background", "(sleep NAP &); sleep NAP & sleep NAP; :", 3, -1, true},
				{"lines and quotes", "x='a!'\nsleep NAP\necho \"$x\"", 1, -1, true},
			} {
				if system != "as it is" && test.more {
					continue
				}
				t.Run(test.name, func(t *testing.T) { // one after the other: time counts
					stopOne(t, conn, test.shell, test.naps, test.code)
				})
			}
		})
	}
}

func stopOne(t *testing.T, conn *remote.Conn, shell string, n, code int) {
	nap := newNap()
	got := stopAt(t, conn, remote.Command{
		Shell: "echo begun; " + strings.ReplaceAll(shell, "NAP", nap), Bound: time.Minute,
	}, nap, n)
	wantStopped(t, got, code)
	if left := naps(t, nap); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if out := string(got.result.Output.Bytes()); !strings.HasPrefix(out, "begun\n") {
		t.Errorf("output %q", out)
	}
	again, err := conn.Run(t.Context(), remote.Command{Shell: "exit 4", Bound: time.Minute})
	if err != nil || again.ExitCode != 4 {
		t.Errorf("the connection is of no use any more: %+v, %v", again, err)
	}
}

// end is the result of Run, and how long after the stop it returned.
type end struct {
	result remote.Result
	err    error
	took   time.Duration
}

// stopAt runs a command and stops it when so many naps have begun.
func stopAt(t *testing.T, conn *remote.Conn, c remote.Command, nap string, n int) end {
	t.Helper()
	stop := make(chan struct{})
	c.Stop = stop
	ended := make(chan end, 1)
	go func() {
		result, err := conn.Run(t.Context(), c)
		ended <- end{result: result, err: err}
	}()
	late := time.After(20 * time.Second)
	for tick := time.Tick(50 * time.Millisecond); len(naps(t, nap)) < n; {
		select {
		case <-tick:
		case e := <-ended:
			t.Fatalf("it ended before it was stopped: %+v, %v", e.result, e.err)
		case <-late:
			t.Fatalf("%d processes, want %d", len(naps(t, nap)), n)
		}
	}
	close(stop)
	since := time.Now()
	e := <-ended
	e.took = time.Since(since)
	return e
}

func wantStopped(t *testing.T, e end, code int) {
	t.Helper()
	if remote.KindOf(e.err) != remote.KindStopped || !wasSent(e.err) {
		t.Fatalf("got %+v, %v, want that it was stopped", e.result, e.err)
	}
	if e.result.ExitCode != code && (code >= 0 || e.result.ExitCode <= 0) {
		t.Errorf("exit code %d, want %d", e.result.ExitCode, code)
	}
	t.Logf("stopped in %s", e.took)
}

func wasSent(err error) bool {
	var e *remote.Error
	return errors.As(err, &e) && e.Sent
}

// newNap is a length of time by which processes can be found again.
func newNap() string { return fmt.Sprintf("300.%09d", rand.IntN(1e9)) }

// naps returns the processes that sleep for exactly this time. Zombies have no command line,
// so it skips them.
func naps(t testing.TB, nap string) (pids []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range lines {
		line, err := os.ReadFile(path)
		guard := bytes.HasPrefix(line, []byte("timeout\x00")) // that of busybox lingers for a second
		if err == nil && !guard && bytes.HasSuffix(line, []byte("sleep\x00"+nap+"\x00")) {
			pids = append(pids, strings.Split(path, "/")[2])
		}
	}
	return pids
}

// A process that leaves the group of its command is not found: that is not
// promised.
func TestRealStopDoesNotSeeWhatLeftTheGroup(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	conn := connect(t, sshd.Host)
	nap := newNap()
	got := stopAt(t, conn, remote.Command{
		Shell: fmt.Sprintf("setsid sleep %s & sleep %s", nap, nap), Bound: time.Minute}, nap, 2)
	left := naps(t, nap)
	for _, pid := range left {
		var n int
		if _, err := fmt.Sscan(pid, &n); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	wantStopped(t, got, -1)
	if len(left) != 1 || !got.result.Open {
		t.Errorf("processes %v are left, output open: %t", left, got.result.Open)
	}
}

func TestRealStopWhereAConnectionHasOneSession(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"MaxSessions 1"}})
	conn := connect(t, sshd.Host)
	nap := newNap()
	got := stopAt(t, conn, remote.Command{Shell: "sleep " + nap, Bound: time.Minute}, nap, 1)
	wantStopped(t, got, -1)
	if left := naps(t, nap); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestRealStopOfAnUpload(t *testing.T) {
	t.Parallel()
	for system, options := range toolsets(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			sshd := sshtest.StartSSHD(t, options)
			conn := connect(t, sshd.Host)
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "file"), []byte("older"), 0o644); err != nil {
				t.Fatal(err)
			}
			content, feed := net.Pipe()
			t.Cleanup(func() { content.Close(); feed.Close() })
			stop, ended := make(chan struct{}), make(chan error, 1)
			u := upload(filepath.Join(dir, "file"), 0o644, bytes.Repeat([]byte("x"), 1000))
			u.Content, u.Stop = content, stop
			go func() { ended <- conn.Upload(t.Context(), u) }()
			// The rest never comes.
			if _, err := feed.Write(bytes.Repeat([]byte("x"), 500)); err != nil {
				t.Fatal(err)
			}
			awaitFiles(t, dir, 2)
			close(stop)
			if err := <-ended; remote.KindOf(err) != remote.KindStopped || !wasSent(err) {
				t.Errorf("got %v, want that it was stopped", err)
			}
			wantFiles(t, dir, "file")
			if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "older" {
				t.Errorf("the file has %q, %v", text, err)
			}
		})
	}
}

// awaitFiles waits until the directory has so many.
func awaitFiles(t *testing.T, dir string, n int) {
	t.Helper()
	late := time.After(20 * time.Second)
	for tick := time.Tick(10 * time.Millisecond); ; {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == n {
			return
		}
		select {
		case <-tick:
		case <-late:
			t.Fatalf("%d files, want %d", len(entries), n)
		}
	}
}
