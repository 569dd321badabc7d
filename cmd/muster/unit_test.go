package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/apitest"
)

// manager plays systemd for a service: it hears what the service says, and ends one that is silent.
type manager struct {
	t    *testing.T
	env  []string
	said chan string // lines
}

// watchdog is short, so that tests end soon, and long enough for a machine with much to do.
const watchdog = 4 * time.Second

func newManager(t *testing.T) *manager {
	t.Helper()
	path := filepath.Join(apitest.ShortDir(t), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	m := &manager{t: t, said: make(chan string, 10000),
		env: []string{"NOTIFY_SOCKET=" + path, fmt.Sprintf("WATCHDOG_USEC=%d", watchdog.Microseconds())}}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := l.Read(buf)
			if err != nil {
				return
			}
			for line := range strings.SplitSeq(string(buf[:n]), "\n") {
				m.said <- line
			}
		}
	}()
	return m
}

// await returns what the service says until a line that begins so, which is the last one.
func (m *manager) await(words string) (lines []string) {
	m.t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case line := <-m.said:
			lines = append(lines, line)
			if strings.HasPrefix(line, words) {
				return lines
			}
		case <-late:
			m.t.Fatalf("systemd does not hear %s, but %q", words, lines)
		}
	}
}

// silent waits until the service has said nothing for the time of the watchdog, and ends it, as
// systemd does.
func (m *manager) silent(p *process) {
	m.t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case line := <-m.said:
			if line == "WATCHDOG=1" {
				m.t.Log("a sign of life was on its way")
			}
		case <-time.After(watchdog):
			if err := p.cmd.Process.Signal(syscall.SIGABRT); err != nil {
				m.t.Fatal(err)
			}
			return
		case <-late:
			m.t.Fatal("the service hangs, and says that it lives")
		}
	}
}

// A server that systemd has started says so when it serves, and as long as it answers itself.
func TestAServerTellsSystemdThatItServes(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	h := newCellar(t, "hosts: []\n")
	h.env = append(h.login("server"), m.env...)
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	m.await("READY=1")
	begin := len(h.server.log.String()) // before, a slow machine may keep it waiting for its tables
	if _, code := h.muster("tasks"); code != cli.ExitOK {
		t.Errorf("it says that it serves, and tasks ends with %d", code)
	}
	for range 3 {
		m.await("WATCHDOG=1")
	}
	for _, bad := range []string{"login refused", "[ERROR]", "systemd"} {
		if strings.Contains(h.server.log.String()[begin:], bad) {
			t.Errorf("a server that asks itself logs it:\n%s", h.server.log)
		}
	}
	if err := h.server.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	m.await("RELOADING=1")
	m.await("READY=1")
	if err := h.server.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.await("STOPPING=1")
	if code := h.server.end(); code != 0 {
		t.Errorf("it ends with %d", code)
	}
}

// A server that cannot take connections any more is ended by the watchdog, although its clocks go.
func TestAServerThatDoesNotAnswerIsEndedByTheWatchdog(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	h := newCellar(t, "hosts: []\n")
	h.env = append(h.login("server"), m.env...)
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	m.await("WATCHDOG=1")
	few := unix.Rlimit{Cur: 3, Max: 3}
	if err := unix.Prlimit(h.server.cmd.Process.Pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Fatal(err)
	}
	h.server.awaitTimes("this service does not serve", 2)
	m.silent(h.server)
	if code := h.server.end(); code == 0 {
		t.Error("it ends as if all were well")
	}
}

// A master whose loop hangs is ended by the watchdog. Its child works on, and the next master hears
// of the end.
func TestAMasterThatHangsIsEndedByTheWatchdog(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	f, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newHouse(t, inventory)
	h.env = append(h.login("master"), m.env...)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	first := h.startTo(in, "master", "--config", h.file("muster.yaml"))
	m.await("READY=1")
	id := h.submit("all", held)
	h.awaitJob(jobs.NewID(id, "fw0001"), jobs.Running)
	m.await("STATUS=running, 1 of 4 children")
	m.await("WATCHDOG=1")
	// Nobody reads its log any more: once the pipe is full, the loop waits for ever.
	if _, err := unix.FcntlInt(in.Fd(), unix.F_SETPIPE_SZ, 4096); err != nil {
		t.Fatal(err)
	}
	fillPipe(t, in)
	if err := first.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	m.silent(first)
	out.Close() // else it could not even die: it prints where it hangs
	if code := first.end(); code == 0 {
		t.Error("it ends as if all were well")
	}
	h.master()
	letGo(t, f)
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 1})
	wantNoOverlap(t, f)
}

// fillPipe writes into a pipe until no byte fits any more.
func fillPipe(t *testing.T, in *os.File) {
	t.Helper()
	fd := int(in.Fd()) // which makes it blocking
	if err := syscall.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1024, 1} {
		for {
			if _, err := syscall.Write(fd, make([]byte, size)); err != nil {
				break
			}
		}
	}
	if err := syscall.SetNonblock(fd, false); err != nil { // it is one file for both
		t.Fatal(err)
	}
}

// up is ready when both parts are.
func TestUpTellsSystemdThatBothPartsWork(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	h := newCellar(t, "hosts: []\n")
	h.env = append(h.login("server"), m.env...)
	p := h.start("up", "--config", h.file("muster.yaml"))
	lines := m.await("READY=1")
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "STATUS=running") }) {
		t.Errorf("before its loop turns it says %q", lines)
	}
	m.await("WATCHDOG=1")
	m.await("WATCHDOG=1")
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.await("STOPPING=1")
	p.end()
}
