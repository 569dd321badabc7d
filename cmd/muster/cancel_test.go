package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/sshtest"
)

// The hosts' own log is the judge: a command that is reported as stopped is gone, and a command
// that could not be stopped is reported as running.
func TestCancelStopsOnTheHosts(t *testing.T) {
	t.Parallel()
	const hosts, deaf, stuck = 100, 7, 13 // every 7th ignores TERM, every 13th everything
	began := make(chan struct{}, hosts)
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts,
		Personality: func(i int) fakefleet.Personality {
			switch {
			case i%stuck == 1:
				return fakefleet.Stuck
			case i%deaf == 1:
				return fakefleet.IgnoreTerm
			}
			return fakefleet.Normal
		},
		Watch: func(e fakefleet.Entry) {
			if e.Running() && !e.Stops && !e.Orphaned {
				began <- struct{}{}
			}
		}})
	h := newHouse(t, inventory)
	h.config(map[string]any{"children": 4, "slots": 25})
	h.master()
	id := h.submit("all", "sleep 90 & sleep 90")
	for range hosts {
		<-began
	}

	asked := time.Now()
	var did jobs.Cancel
	if code := h.query(&did, "cancel", string(id), "--reason", "wrong ruleset"); code != 0 || did.Running != hosts {
		t.Errorf("cancel: exit %d, %+v", code, did)
	}
	done := h.wait(id)
	took := time.Since(asked)
	said := map[string]jobs.JobInfo{}
	for _, j := range h.jobs(id) {
		said[j.Host] = j
	}
	left, last := 0, asked
	for _, e := range f.Log() {
		if e.Stops {
			continue
		}
		j := said[e.Host]
		words := "; stopped on the host"
		want := jobs.Cancelled
		if e.Running() {
			left++
			want, words = jobs.Unknown, "cancel requested, still running: "
		} else if e.End.After(last) {
			last = e.End
		}
		if j.Outcome != want || !strings.Contains(j.Error, words) || !strings.Contains(j.Error, "wrong ruleset") {
			t.Errorf("%s: %s, %q, on the host: %+v", e.Host, j.Outcome, j.Error, e)
		}
	}
	t.Logf("the last command ended %s after the cancel, the task after %s; %d could not be stopped",
		last.Sub(asked), took, left)
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Cancelled: hosts - 8, jobs.Unknown: 8})
	if took > 45*time.Second {
		t.Errorf("it took %s", took) // five seconds on an idle machine
	}
	wantNoOverlap(t, f)
}

func TestCancelOnRealOpenSSH(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSSHD(t, sshtest.Options{})
	h := newHouse(t, fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
		s.Address, s.Port, s.User, s.Key, s.HostKey))
	h.master()
	dir := t.TempDir()
	pids := filepath.Join(dir, "pids")
	id := h.submit("fw1", fmt.Sprintf("trap '' TERM; echo $$ > %s.new; mv %s.new %s; "+
		"while :; do sleep 1; done", pids, pids, pids))
	pid := ""
	late := time.After(30 * time.Second)
	for tick := time.Tick(20 * time.Millisecond); pid == ""; {
		if text, err := os.ReadFile(pids); err == nil {
			pid = strings.TrimSpace(string(text))
		}
		select {
		case <-tick:
		case <-late:
			t.Fatal("it does not begin")
		}
	}
	asked := time.Now()
	if _, code := h.muster("cancel", string(id), "--reason", "wrong host"); code != 0 {
		t.Errorf("cancel: exit %d", code)
	}
	done := h.wait(id)
	t.Logf("%s after the cancel", time.Since(asked))
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Cancelled: 1})
	j := h.jobs(id)[0]
	if j.ExitCode == nil || *j.ExitCode <= 128 || !strings.HasSuffix(j.Error, "wrong host; stopped on the host") {
		t.Errorf("the job: %+v", j)
	}
	// A process that is dead and not yet reaped has no command line.
	if line, err := os.ReadFile("/proc/" + pid + "/cmdline"); err == nil && len(line) > 0 {
		t.Errorf("process %s is still there: %q", pid, line)
	}
}
