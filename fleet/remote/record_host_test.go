package remote_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// Of many concurrent requests, for one step or for several, the host runs one at a time.
func TestRealRecordLetsNoTwoIn(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			dir := t.TempDir()
			log, refused := filepath.Join(dir, "log"), filepath.Join(dir, "refused")
			shell := fmt.Sprintf("echo in >> %[1]s; until [ -e %[2]s ]; do sleep .1; done; "+
				"echo out >> %[1]s; echo did it", log, refused)
			var all sync.WaitGroup
			var busy atomic.Int32
			for i := range 8 {
				r := step(fmt.Sprint("job", i/2), 1) // each twice
				conn := h.connect()
				all.Go(func() {
					for {
						result, err := conn.Run(t.Context(), remote.Command{Shell: shell, Bound: time.Minute, Record: &r})
						if remote.KindOf(err) == remote.KindBusy && busy.Add(1) < 1000 {
							if err := os.WriteFile(refused, nil, 0o600); err != nil {
								t.Error(err)
							}
							continue
						}
						if err != nil || string(result.Output.Bytes()) != "did it\n" {
							t.Errorf("got %+v, %v", result, err)
						}
						return
					}
				})
			}
			all.Wait()
			text, err := os.ReadFile(log)
			if err != nil || string(text) != strings.Repeat("in\nout\n", 4) || busy.Load() == 0 {
				t.Errorf("%d were refused, the host says %v\n%s", busy.Load(), err, text)
			}
		})
	}
}

// The end of a step may be written down before all that it said: who comes just then waits.
func TestRealRecordIsReadWhenAllIsWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	slow := "#!/bin/sh\nsleep .6\nPATH=/usr/bin:/bin exec dd \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "dd"), []byte(slow), 0o755); err != nil {
		t.Fatal(err)
	}
	h := newRecordingHost(t, sshtest.Options{Config: []string{"SetEnv PATH=" + dir + ":/usr/bin:/bin"}})
	first, r, ended := h.connect(), step("j", 1), make(chan error, 1)
	go func() {
		_, err := first.Run(t.Context(), remote.Command{Shell: "echo did it", Bound: time.Minute, Record: &r})
		ended <- err
	}()
	for files := []string(nil); len(files) == 0; {
		files, _ = filepath.Glob(filepath.Join(h.dir, "*.end")) // the pattern is right
		select {
		case err := <-ended:
			t.Fatalf("the first has ended before its end was recorded: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	result, err := h.run(again(step("j", 2)), "echo twice")
	wantEnd(t, result, err, "exit 0, attached: did it\n")
	if result.Open {
		t.Errorf("got %+v", result)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A step that dies without a recorded end is of unknown result, and runs again only if it may.
func TestRealRecordWithoutAnEnd(t *testing.T) {
	t.Parallel()
	h := newRecordingHost(t, sshtest.Options{})
	nap := newNap()
	h.begin(step("j", 1), "echo begun; exec sleep "+nap, nap)

	// The watcher is killed: the command continues, can be followed, and keeps others out.
	for _, pid := range watchers(t, nap) {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	_, err := h.run(step("other", 2), "echo other")
	wantKind(t, err, remote.KindBusy, false)
	ended := make(chan error, 1)
	conn := h.connect()
	go func() {
		r := again(step("j", 3))
		_, err := conn.Run(t.Context(), remote.Command{Shell: "echo twice", Bound: time.Minute, Record: &r})
		ended <- err
	}()
	for _, pid := range naps(t, nap) {
		n, _ := strconv.Atoi(pid)
		syscall.Kill(n, syscall.SIGKILL)
	}
	err = <-ended
	wantKind(t, err, remote.KindGone, true)
	if err != nil && !strings.Contains(err.Error(), "it was killed on the host") {
		t.Errorf("it says %v", err)
	}
	result, err := h.run(step("other", 4), "echo other")
	wantEnd(t, result, err, "exit 0: other\n")

	// The same on a host that was rebooted.
	started := only(t, filepath.Join(h.dir, "*001*"+"*.started"), 0)
	text, err := os.ReadFile(started)
	if err != nil {
		t.Fatal(err)
	}
	text = append([]byte("00000000-0000-0000-0000-000000000000"), text[36:]...)
	if err := os.WriteFile(started, text, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = h.run(again(step("j", 5)), "echo twice")
	wantKind(t, err, remote.KindGone, true)
	if err != nil && !strings.Contains(err.Error(), "rebooted") {
		t.Errorf("it says %v", err)
	}
	r := again(step("j", 6))
	r.Twice = true
	result, err = h.run(r, "echo twice")
	wantEnd(t, result, err, "exit 0: twice\n")
}

// only finds file number n of a pattern.
func only(t testing.TB, pattern string, n int) string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) <= n {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files[n]
}

// watchers are the processes above a nap that are not of its session.
func watchers(t *testing.T, nap string) (pids []int) {
	t.Helper()
	for _, pid := range naps(t, nap) {
		for pid != "1" && pid != "0" {
			line, err := os.ReadFile("/proc/" + pid + "/cmdline")
			if err != nil {
				t.Fatal(err)
			}
			n, _ := strconv.Atoi(pid)
			if bytes.Contains(line, []byte("muster-record")) {
				pids = append(pids, n)
			}
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			if err != nil {
				t.Fatal(err)
			}
			pid = strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))[1]
		}
	}
	if len(pids) == 0 {
		t.Fatal("nobody watches")
	}
	return pids
}

// A line that never came to the disk as a whole is of a step that never began.
func TestRealRecordThatWasNeverWhole(t *testing.T) {
	t.Parallel()
	h := newRecordingHost(t, sshtest.Options{})
	result, err := h.run(step("first", 1), "true")
	wantEnd(t, result, err, "exit 0: ")
	result, err = h.run(step("j", 2), "echo once")
	wantEnd(t, result, err, "exit 0: once\n")
	started := only(t, filepath.Join(h.dir, "*.started"), 1)
	for _, path := range []string{".end", ".drained", ".out.0"} {
		if err := os.Remove(strings.TrimSuffix(started, ".started") + path); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(started, []byte("0bad"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := again(step("j", 3))
	r.Since = step("", 2).Token
	result, err = h.run(r, "echo now")
	wantEnd(t, result, err, "exit 0: now\n")
}

// A folder that others could have a hand in is not used.
func TestRealRecordFolders(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		make func(dir string) error
		home bool // the one in the home is used
	}{
		{"none yet", func(string) error { return nil }, false},
		{"ours", func(dir string) error { return os.Mkdir(dir, 0o700) }, false},
		{"readable by others", func(dir string) error { return mkdir(dir, 0o755) }, false},
		{"writable by others", func(dir string) error { return mkdir(dir, 0o777) }, true},
		{"writable by the group", func(dir string) error { return mkdir(dir, 0o770) }, true},
		{"a file", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, true},
		{"a link", func(dir string) error { return os.Symlink(filepath.Dir(dir), dir) }, true},
		{"a link to nowhere", func(dir string) error { return os.Symlink("/nowhere", dir) }, true},
		{"another's", func(dir string) error {
			if err := mkdir(dir, 0o755); err != nil || os.Getuid() != 0 {
				return os.Chmod(dir, 0o777) // who is not root has no other to give it to
			}
			return os.Chown(dir, 12345, 12345)
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, sshtest.Options{})
			if err := test.make(h.dir); err != nil {
				t.Fatal(err)
			}
			result, err := h.run(step("j", 1), "echo once")
			wantEnd(t, result, err, "exit 0: once\n")
			result, err = h.run(again(step("j", 2)), "echo twice")
			wantEnd(t, result, err, "exit 0, attached: once\n")
			home := filepath.Join(filepath.Dir(h.host.Key), ".local/state/muster-record/born")
			if _, err := os.Stat(home); (err == nil) != test.home {
				t.Errorf("%s: %v, want it to be there: %t", home, err, test.home)
			}
			if _, err := os.Stat(filepath.Join(h.dir, "born")); (err == nil) == test.home {
				t.Errorf("%s: %v", h.dir, err)
			}
		})
	}
}

func mkdir(dir string, mode os.FileMode) error {
	if err := os.Mkdir(dir, mode); err != nil {
		return err
	}
	return os.Chmod(dir, mode) // whatever the mask is
}

// A full or read-only disk loses no record and lets no step start. Output that it cuts off is
// reported as lost.
func TestRealRecordOnABadDisk(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			badDisk(t, newRecordingHost(t, options))
		})
	}
}

func badDisk(t *testing.T, h *recordingHost) {
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=200k,mode=700", "none", h.dir).
		CombinedOutput(); err != nil {
		t.Skipf("nothing can be mounted here: %s", out)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", h.dir).Run() })
	born := fmt.Sprintf("%09d %09d -\n", 1, 1) // else it is found to be in memory
	if err := os.WriteFile(filepath.Join(h.dir, "born"), []byte(born), 0o600); err != nil {
		t.Fatal(err)
	}

	// The command itself fills the disk: its end and its exit code are kept.
	result, err := h.run(step("j", 1), "head -c 1000000 /dev/zero; exit 3")
	if err != nil || result.ExitCode != 3 || result.Lost != "the disk of the host was full" {
		t.Errorf("got exit %d, lost %q, %v, want 3 and output that is cut off", result.ExitCode, result.Lost, err)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "full"), make([]byte, 1<<20), 0o600); err == nil {
		t.Error("the disk is not full")
	}
	_, err = h.run(step("k", 2), "echo not run")
	wantKind(t, err, remote.KindRecord, false)
	if !strings.HasSuffix(err.Error(), `; the host said: "No space left on device"`) {
		t.Errorf("got %v, want that the disk is full", err)
	}
	result, err = h.run(again(step("j", 3)), "echo twice")
	if err != nil || result.ExitCode != 3 || !result.Attached || result.Lost == "" {
		t.Errorf("got %d, attached %t, %v, want 3, attached", result.ExitCode, result.Attached, err)
	}

	os.Remove(filepath.Join(h.dir, "full"))
	readOnly(t, h.dir)
	_, err = h.run(step("k", 4), "echo not run")
	wantKind(t, err, remote.KindRecord, false)
	result, err = h.run(again(step("j", 5)), "echo twice")
	if err != nil || result.ExitCode != 3 || !result.Attached {
		t.Errorf("got %d, attached %t, %v, want 3, attached", result.ExitCode, result.Attached, err)
	}
}

// readOnly lets nothing be written to a mounted disk any more. As long as a wrapper
// tidies up behind a step it has files open there, and the kernel calls it busy.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	late := time.After(time.Minute)
	for tick := time.Tick(20 * time.Millisecond); ; {
		out, err := exec.Command("mount", "-o", "remount,ro", dir).CombinedOutput()
		if err == nil {
			return
		}
		select {
		case <-late:
			t.Fatalf("remount: %s", out)
		case <-tick:
		}
	}
}

// A login shell may say what it wants, and be any.
func TestRealRecordBehindALoginShell(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, command string }{
		{"noise", `echo Welcome; printf %s half; eval "$SSH_ORIGINAL_COMMAND"; echo bye`},
		{"an echo", `echo "$SSH_ORIGINAL_COMMAND"; eval "$SSH_ORIGINAL_COMMAND"`},
		{"restricted", `rbash -c "$SSH_ORIGINAL_COMMAND"`},
		{"strict", `set -u; eval "$SSH_ORIGINAL_COMMAND"`},
		{"csh", `csh -c "$SSH_ORIGINAL_COMMAND"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			shell, _, _ := strings.Cut(test.command, " ")
			if _, err := exec.LookPath(shell); err != nil && shell == "csh" {
				t.Skipf("there is no %s here", shell) // no part of Debian's own system
			}
			h := newRecordingHost(t, sshtest.Options{Config: []string{"ForceCommand " + test.command}})
			result, err := h.run(step("j", 1), "echo 'it!'; exit 3")
			wantEnd(t, result, err, "exit 3: it!\n")
			result, err = h.run(again(step("j", 2)), "echo twice")
			wantEnd(t, result, err, "exit 3, attached: it!\n")
		})
	}
}

// Debian's busybox has no flock: such a host keeps no record, and says so.
func TestRealHostWithoutFlock(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("there is no busybox here")
	}
	dir := t.TempDir()
	for _, tool := range []string{"sh", "timeout", "sleep", "cat", "rm", "ps", "mv", "dd", "tail", "head",
		"wc", "ls", "mkdir", "sync", "setsid", "stat"} {
		if err := os.Symlink(path, filepath.Join(dir, tool)); err != nil {
			t.Fatal(err)
		}
	}
	h := newRecordingHost(t, sshtest.Options{Config: []string{
		fmt.Sprintf("SetEnv PATH=%s HOME=%s", dir, dir)}})
	_, err = h.run(step("j", 1), "echo not run")
	wantKind(t, err, remote.KindRecord, false)
	if err == nil || !strings.Contains(err.Error(), "flock") {
		t.Errorf("it does not say what is missing: %v", err)
	}
	h.host.Fence = fleet.FenceAuto
	r := step("j", 1)
	result, err := h.connect().Run(t.Context(), remote.Command{
		Shell: "cat; exit 3", Stdin: strings.NewReader("in"), Bound: time.Minute, Record: &r})
	wantEnd(t, result, err, "exit 3: in")
	if result.Unfenced != "flock" {
		t.Errorf("it lacks %q, want flock", result.Unfenced)
	}
	_, err = h.run(again(step("j", 2)), "echo not run")
	wantKind(t, err, remote.KindUntold, false)
	r = again(step("j", 3))
	r.Twice = true
	result, err = h.run(r, "echo twice")
	wantEnd(t, result, err, "exit 0: twice\n")

	made, err := h.connect().Mark(t.Context(), marker("j", 5))
	if err != nil || made.Unfenced != "it lacks flock" {
		t.Errorf("of a marker it says %+v, %v", made, err)
	}

	nap := newNap()
	r = step("k", 4)
	got := stopAt(t, h.connect(), remote.Command{Shell: "sleep " + nap, Bound: time.Minute, Record: &r}, nap, 1)
	wantStopped(t, got, -1)
	if left := naps(t, nap); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

// A host that does not answer like a shell may have done anything.
func TestRealHostThatIsNoShell(t *testing.T) {
	t.Parallel()
	h := newRecordingHost(t, sshtest.Options{Config: []string{"ForceCommand echo '% Invalid input'; exit 1"}})
	h.host.Fence = fleet.FenceAuto
	_, err := h.run(step("j", 1), "echo hi")
	wantKind(t, err, remote.KindMute, true)
	if err == nil || !strings.Contains(err.Error(), "% Invalid input") || !strings.Contains(err.Error(), "fence: none") {
		t.Errorf("it says %v", err)
	}
	h.host.Fence = fleet.FenceNone
	_, err = h.run(again(step("j", 2)), "echo hi")
	wantKind(t, err, remote.KindUntold, false)
}
