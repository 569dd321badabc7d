package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/sshtest"
)

// recording is a house whose hosts are real and keep records, each in its own home.
type recording struct {
	*house
	homes  []string
	master *process
}

func newRecording(t *testing.T, hosts int) *recording {
	t.Helper()
	r := &recording{}
	var inventory strings.Builder
	inventory.WriteString("defaults: {fence: required}\nhosts:\n")
	for i := range hosts {
		s := sshtest.StartSSHD(t, sshtest.Options{Address: fmt.Sprintf("127.0.0.%d", i+2)})
		fmt.Fprintf(&inventory, "  - {name: fw%d, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
			i+1, s.Address, s.Port, s.User, s.Key, s.HostKey)
		r.homes = append(r.homes, filepath.Dir(s.Key))
	}
	r.house = newHouse(t, inventory.String())
	r.master = r.house.master()
	return r
}

// await waits until a file is in all homes.
func (r *recording) await(name string) {
	r.t.Helper()
	late := r.late()
	for _, home := range r.homes {
		for tick := time.Tick(10 * time.Millisecond); ; {
			if _, err := os.Stat(filepath.Join(home, name)); err == nil {
				break
			}
			select {
			case <-tick:
			case <-late:
				r.t.Fatalf("there is no %s in %s; the master says:\n%s", name, home, r.master.log)
			}
		}
	}
}

// wantLines compares a file of every host with the wanted text.
func (r *recording) wantLines(name, want string) {
	r.t.Helper()
	for _, home := range r.homes {
		if text, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(text) != want {
			r.t.Errorf("%s/%s has %q, %v, want %q", home, name, text, err, want)
		}
	}
}

// signal sends a signal to all workers. A worker without work may end meanwhile.
func (r *recording) signal(s syscall.Signal) {
	r.t.Helper()
	for _, pid := range children(r.master.cmd.Process.Pid) {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			r.t.Error(err)
		}
	}
}

// waits is a command on real hosts that runs until goOn, so that the test may take its time, and
// the last host may begin late.
const waits = "until [ -e ~/go ]; do sleep .1; done"

// goOn ends the waiting commands on all hosts.
func (r *recording) goOn() {
	r.t.Helper()
	for _, home := range r.homes {
		if err := os.WriteFile(filepath.Join(home, "go"), nil, 0o600); err != nil {
			r.t.Error(err)
		}
	}
}

// A killed worker loses nothing: the command continues, and the next attempt receives its end.
func TestAKilledWorkersStepIsAttachedTo(t *testing.T) {
	t.Parallel()
	r := newRecording(t, 4)
	t.Cleanup(r.goOn) // also if the test fails
	id := r.submit("all", "echo begun >> ~/begun; "+waits+"; echo done >> ~/file; echo out")
	r.await("begun")
	r.signal(syscall.SIGKILL)
	r.goOn()
	r.wantAttached(id, "out\n")
	n := 0
	for _, e := range r.happened() {
		if detail, ok := e.Detail.(map[string]any); e.Event == "end" && ok && detail["how"] == "attached" {
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d events say attached, want 4", n)
	}
}

// The same if the worker is killed between the end of the command and its report.
func TestAWorkerKilledBeforeItsReportLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRecording(t, 2)
	t.Cleanup(r.goOn) // also if the test fails
	id := r.submit("all", "echo begun >> ~/begun; "+waits+"; echo done >> ~/file; echo out")
	r.await("begun")
	r.signal(syscall.SIGSTOP)
	r.goOn()
	r.await("file")
	for _, home := range r.homes {
		late := r.late()
		for tick := time.Tick(10 * time.Millisecond); ; {
			ends, _ := filepath.Glob(filepath.Join(home, ".local/state/muster-record/*.end"))
			if len(ends) > 0 {
				break
			}
			select {
			case <-tick:
			case <-late:
				t.Fatal("the step does not end")
			}
		}
	}
	r.signal(syscall.SIGKILL)
	r.wantAttached(id, "out\n")
}

// wantAttached waits for the end of a task of which a second attempt took all results.
func (r *recording) wantAttached(id jobs.TaskID, output string) {
	t := r.t
	t.Helper()
	wantOutcomes(t, r.wait(id), map[jobs.Outcome]int{jobs.Succeeded: len(r.homes)})
	r.wantLines("begun", "begun\n")
	r.wantLines("file", "done\n")
	for _, j := range r.jobs(id) {
		if j.Attempt != 2 || j.Note != "attached" || j.Error != "" || *j.ExitCode != 0 {
			t.Errorf("got %+v, want attempt 2 to be attached", j)
		}
		out, _ := r.muster("job", string(j.ID))
		if !strings.Contains(out, "attached") {
			t.Errorf("muster job says\n%s", out)
		}
		out, _ = r.muster("logs", string(j.ID))
		if out != "== attached to what an earlier attempt started ==\n"+output {
			t.Errorf("muster logs says %q", out)
		}
	}
}
