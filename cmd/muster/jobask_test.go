package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/api"
	"muster/cli/tasks"
	"muster/jobs"
	"muster/testkit/sshtest"
)

// cutLine is a line to a host that can be cut, and repaired.
type cutLine struct {
	port string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn // guarded by mu
}

func newCutLine(t *testing.T, addr string) *cutLine {
	l := &cutLine{}
	l.port = newLine(t, addr, l.forward, nil)
	t.Cleanup(func() { l.set(true) })
	return l
}

// set cuts the line, or repairs it.
func (l *cutLine) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for _, c := range l.conns {
		if cut {
			c.Close()
		}
	}
}

func (l *cutLine) forward(down, up net.Conn) {
	defer up.Close()
	defer down.Close()
	l.mu.Lock()
	cut := l.cut
	l.conns = append(l.conns, down, up)
	l.mu.Unlock()
	if !cut {
		_, _ = io.Copy(up, down)
	}
}

// newAsking is a house with one host that keeps records, behind a line that can be cut. Its group
// has no other member.
func newAsking(t *testing.T) (*recording, *cutLine) {
	t.Helper()
	s := sshtest.StartSSHD(t, sshtest.Options{})
	line := newCutLine(t, fmt.Sprintf("%s:%d", s.Address, s.Port))
	h := newCellar(t, fmt.Sprintf("defaults: {fence: required}\nhosts:\n  - {name: fw1, address: 127.0.0.1, "+
		"port: %s, user: %s, key: %s, host_key: %q, group: edge}\n", line.port, s.User, s.Key, s.HostKey))
	h.write("own.yaml", "name: two\ntimeout: 5m\nsteps:\n  - {name: first, run: 'echo begun >> ~/begun; "+waits+
		"; echo one >> ~/file'}\n  - {name: second, run: 'echo two >> ~/file'}\n")
	h.configure(map[string]any{"runbooks": []string{h.file("own.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	r := &recording{house: h, homes: []string{filepath.Dir(s.Key)}}
	r.master = h.master()
	t.Cleanup(r.goOn) // also if the test fails
	return r, line
}

// endUnknown cuts the line of a working job, cancels the job, and repairs the line.
func (r *recording) endUnknown(id jobs.ID, line *cutLine) {
	r.t.Helper()
	r.await("begun")
	line.set(true)
	r.awaitJob(id, jobs.Waiting)
	if out, code := r.muster("cancel", string(id), "--reason", "the network is down"); code != 0 {
		r.t.Fatalf("cancel: exit %d: %s", code, out)
	}
	if j := r.awaitJob(id, jobs.Ended); j.Outcome != jobs.Unknown {
		r.t.Fatalf("it ended %s: %s", j.Outcome, j.Error)
	}
}

// asks orders to ask the host, and compares the answer with the wanted one.
func (r *recording) asks(id jobs.ID, answer jobs.Answer, words string) tasks.AskedJob {
	r.t.Helper()
	var all []tasks.AskedJob
	code := r.query(&all, "job", string(id), "--ask", "--reason", "INC-7", "--timeout", "1m")
	known := answer == jobs.AnswerSettled
	if len(all) != 1 || all[0].Ask == nil || all[0].Ask.Answer != answer || all[0].Settled != known ||
		(code == 0) != known || !strings.Contains(all[0].Ask.Words, words) {
		r.t.Errorf("asked, exit %d: %+v, want %s with %q", code, all, answer, words)
		for _, a := range all {
			r.t.Errorf("%+v", a.Ask)
		}
	}
	return append(all, tasks.AskedJob{})[0]
}

// awaitRecord waits until the record of a host has the ends of so many steps.
func (r *recording) awaitRecord(ends int) {
	r.t.Helper()
	late := r.late()
	for tick := time.Tick(10 * time.Millisecond); ; {
		files, _ := filepath.Glob(filepath.Join(r.homes[0], ".local/state/muster-record/*.drained"))
		if len(files) >= ends {
			return
		}
		select {
		case <-tick:
		case <-late:
			r.t.Fatal("the step does not end")
		}
	}
}

// removeRecord removes all records of a host. The record keeper may still tidy up after the end of
// a step, so the folder is removed until nobody writes into it any more.
func (r *recording) removeRecord() {
	r.t.Helper()
	late := r.late()
	for tick := time.Tick(10 * time.Millisecond); ; {
		err := os.RemoveAll(filepath.Join(r.homes[0], ".local/state/muster-record"))
		if err == nil {
			return
		}
		select {
		case <-tick:
		case <-late:
			r.t.Fatal(err)
		}
	}
}

// A step continues on a host that cannot be reached and its job ends unknown. An order settles it
// by the host's record as soon as the record has the end, not before. All counters of ends follow,
// nothing runs again, and the frozen group stays frozen.
func TestAnUnknownJobIsSettledByTheRecordOfItsHost(t *testing.T) {
	t.Parallel()
	r, line := newAsking(t)
	id := r.disturb("fw1", "echo begun >> ~/begun; "+waits+"; echo done >> ~/file; echo out")
	r.endUnknown(id, line)
	r.asks(id, jobs.AnswerUnreachable, "connect")
	line.set(false)
	r.asks(id, jobs.AnswerRunning, "the step is at work on the host, for ")
	r.goOn()
	r.awaitRecord(1)
	a := r.asks(id, jobs.AnswerSettled, "succeeded")
	if a.Outcome != jobs.Succeeded || a.Frozen != "edge" {
		t.Errorf("settled: %+v", a)
	}
	r.wantLines("file", "done\n")
	r.wantLines("begun", "begun\n")

	out, code := r.muster("job", string(id), "--ask")
	if code != 0 || !strings.Contains(out, "it ended succeeded") || !strings.Contains(out, "muster group clear edge") {
		t.Errorf("asked once more: exit %d: %s", code, out)
	}
	out, _ = r.muster("job", string(id))
	for _, words := range []string{"INC-7", "it had ended unknown: cancelled when a step may have run"} {
		if !strings.Contains(out, words) {
			t.Errorf("job does not say %q:\n%s", words, out)
		}
	}
	if out, _ := r.muster("logs", string(id)); !strings.HasSuffix(out, "out\n") {
		t.Errorf("logs say %q", out)
	}
	info := r.task(id.Task())
	if info.Outcomes[jobs.Succeeded] != 1 || info.Outcomes[jobs.Unknown] != 0 {
		t.Errorf("the task counts %v", info.Outcomes)
	}
	r.awaitHistory(id, jobs.Succeeded)
	r.awaitGroup("edge", func(g jobs.Group) bool { return g.Frozen != "" })
	if out, code := r.muster("group", "clear", "edge", "--reason", "looked"); code != 0 {
		t.Fatalf("clear: exit %d: %s", code, out)
	}
	wantOutcomes(t, r.wait(r.disturb("fw1", "true").Task()), map[jobs.Outcome]int{jobs.Succeeded: 1})
}

// awaitHistory waits until history, with its attempts, has an end.
func (r *recording) awaitHistory(id jobs.ID, want jobs.Outcome) {
	r.t.Helper()
	for late, tick := r.late(), time.Tick(commandEvery); ; {
		var page api.PastJobs
		r.query(&page, "history", "--task", string(id.Task()))
		var j tasks.JobDetails
		r.query(&j, "job", string(id))
		if len(page.Jobs) == 1 && page.Jobs[0].Outcome == want && len(j.Attempts) > 0 &&
			j.Attempts[len(j.Attempts)-1].How == string(want) {
			return
		}
		select {
		case <-tick:
		case <-late:
			r.t.Fatalf("history says %+v, %+v", page.Jobs, j.Attempts)
		}
	}
}

// A job with one successful step and a next step that never began did not do its work.
func TestAJobWithoutItsLastStepIsNotSettledAsSucceeded(t *testing.T) {
	t.Parallel()
	r, line := newAsking(t)
	var task jobs.TaskInfo
	r.query(&task, "run", "two", "--on", "fw1", "--detach")
	id := jobs.NewID(task.Task, "fw1")
	r.endUnknown(id, line)
	line.set(false)
	r.goOn()
	r.awaitRecord(1)
	a := r.asks(id, jobs.AnswerSettled, "failed: step 1 (first) ended well, and nothing was done after it: "+
		"step 2 (second) never began")
	if a.Outcome != jobs.Failed || a.Class != jobs.ClassOperator {
		t.Errorf("settled: %+v", a)
	}
	r.wantLines("file", "one\n")
}

// Without the record nothing is settled, however often the host is asked.
func TestAHostWithoutTheRecordSettlesNothing(t *testing.T) {
	t.Parallel()
	r, line := newAsking(t)
	id := jobs.NewID(r.submit("fw1", "echo begun >> ~/begun; "+waits), "fw1")
	r.endUnknown(id, line)
	r.goOn()
	r.awaitRecord(1)
	r.removeRecord()
	line.set(false)
	for range 2 {
		r.asks(id, jobs.AnswerUntold, "")
	}
	var list []tasks.AskedJob
	if code := r.query(&list, "job", string(id.Task()), "--ask", "--unknown"); code != 1 || len(list) != 1 {
		t.Errorf("all of the task: exit %d, %+v", code, list)
	}
	if j := r.awaitJob(id, jobs.Ended); j.Outcome != jobs.Unknown {
		t.Errorf("it is %s", j.Outcome)
	}
}
