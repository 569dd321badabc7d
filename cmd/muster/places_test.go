package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"muster/jobs"
	"muster/testkit/sshtest"
)

// places are the points at which a test stops the wrapper of a step on a host, each by a tool of
// that host which waits there: its name, and the condition.
var places = []struct{ name, tool, when string }{
	{"before", "flock", "wait_here; exec $real \"$@\""}, // nothing is on the disk yet
	{"at started", "sync", "$real \"$@\"; code=$?\ncase $* in *.started*) wait_here ;; esac; exit $code"},
	{"in the middle", "middle", "wait_here"}, // of the command
	{"after the effect", "mv", "case $* in *.end) wait_here ;; esac; exec $real \"$@\""},
	{"before the report", "tail", "ls ~/.local/state/muster-record/*.end >&2 && wait_here; exec $real \"$@\""},
}

// stillHosts are hosts that stop at one place each, and lines to them that can be cut.
type stillHosts struct {
	*recording
	mu   sync.Mutex
	open []net.Conn // guarded by mu
}

func newStillHosts(t *testing.T) *stillHosts {
	t.Helper()
	s := &stillHosts{recording: &recording{}}
	var inventory strings.Builder
	inventory.WriteString("defaults: {fence: required}\nhosts:\n")
	for i, p := range places {
		home := t.TempDir()
		real, err := exec.LookPath(p.tool)
		if err != nil && p.tool != "middle" {
			t.Fatal(err)
		}
		tool := "#!/bin/sh\nwait_here() { : >~/at; until [ -e ~/go ]; do sleep .05; done; }\nreal=" + real + "\n"
		if err := os.Mkdir(filepath.Join(home, "bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"middle": "#!/bin/sh\n", p.tool: tool + p.when + "\n"} {
			if err := os.WriteFile(filepath.Join(home, "bin", name), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		sshd := sshtest.StartSSHD(t, sshtest.Options{Address: fmt.Sprintf("127.0.0.%d", i+2),
			Config: []string{fmt.Sprintf("SetEnv HOME=%s PATH=%s/bin:%s", home, home, os.Getenv("PATH"))}})
		port := newLine(t, net.JoinHostPort(sshd.Address, fmt.Sprint(sshd.Port)), s.up, nil)
		fmt.Fprintf(&inventory, "  - {name: fw%d, address: 127.0.0.1, port: %s, user: %s, key: %s, host_key: %q}\n",
			i+1, port, sshd.User, sshd.Key, sshd.HostKey)
		s.homes = append(s.homes, home)
	}
	t.Cleanup(s.release) // also if the test fails
	s.house = newHouse(t, inventory.String())
	s.configure(map[string]any{"master": map[string]any{"children": len(places)}})
	s.master = s.house.master()
	return s
}

// up forwards the bytes to a host.
func (s *stillHosts) up(near, far net.Conn) {
	s.mu.Lock()
	s.open = append(s.open, near, far)
	s.mu.Unlock()
	carry(near, far)
}

// cut cuts all present lines. Later lines stay.
func (s *stillHosts) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, conn := range s.open {
		conn.Close()
	}
	s.open = nil
}

// release lets all hosts continue.
func (s *stillHosts) release() {
	for _, home := range s.homes {
		_ = os.WriteFile(filepath.Join(home, "go"), nil, 0o600) // a home that is gone needs none
	}
}

// strike stops a task at all places at once, one on each host, calls worst, and checks the truth:
// each effect exists once, and each job ends with the real result.
func (s *stillHosts) strike(worst func()) []jobs.JobInfo {
	s.t.Helper()
	id := s.submit("all", "middle; echo done >> ~/file; echo out")
	s.await("at")
	worst()
	s.release()
	wantOutcomes(s.t, s.wait(id), map[jobs.Outcome]int{jobs.Succeeded: len(places)})
	s.wantLines("file", "done\n")
	list := s.jobs(id)
	for i, j := range list {
		// Output that a killed worker has passed on stands in front of the mark of the next attempt,
		// and is not said again behind it.
		out, _ := s.muster("logs", string(j.ID))
		out = strings.Replace(out, "== attached to what an earlier attempt started ==\n", "", 1)
		if out != "out\n" || j.Error != "" || j.ExitCode == nil ||
			*j.ExitCode != 0 {
			s.t.Errorf("%s: got %+v, and its output is %q", places[i].name, j, out)
		}
	}
	return list
}

// Wherever the wrapper of a step is when its worker is killed, the step is done once, and the next
// attempt learns the truth.
func TestAWorkerIsKilledAtEveryPlace(t *testing.T) {
	t.Parallel()
	s := newStillHosts(t)
	for i, j := range s.strike(func() { s.signal(syscall.SIGKILL) }) {
		// If nothing had begun, either attempt may be the one that begins the step.
		if j.Attempt != 2 || i > 0 && j.Note != "attached" {
			t.Errorf("%s: attempt %d, %q, want attempt 2 to be attached", places[i].name, j.Attempt, j.Note)
		}
	}
}

// The same when only the connection is lost: the worker makes it anew.
func TestALineIsCutAtEveryPlace(t *testing.T) {
	t.Parallel()
	s := newStillHosts(t)
	s.strike(s.cut)
}
