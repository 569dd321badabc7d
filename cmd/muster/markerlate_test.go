package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/jobs"
	"muster/testkit/sshtest"
)

// lateFlock replaces flock on a host. There the first step stops before it takes the lock: its
// record is not on the disk yet, and the markers are.
const lateFlock = `#!/bin/sh
case $(tr '\000' ' ' </proc/$PPID/cmdline) in
*muster-record*) if mkdir ~/at; then until [ -e ~/go ]; do sleep .05; done; fi ;;
esac
exec REAL "$@"
`

// newLatePair is a pair on which the first step on fw1 stops.
func newLatePair(t *testing.T) *recording {
	t.Helper()
	r := &recording{}
	real, err := exec.LookPath("flock")
	if err != nil {
		t.Skip("there is no flock here")
	}
	inventory := "defaults: {fence: required, customer: acme}\nhosts:\n"
	for i := range 2 {
		home := t.TempDir()
		if err := os.Mkdir(filepath.Join(home, "bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			text := strings.ReplaceAll(lateFlock, "REAL", real)
			if err := os.WriteFile(filepath.Join(home, "bin", "flock"), []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s := sshtest.StartSSHD(t, sshtest.Options{Address: fmt.Sprintf("127.0.0.%d", i+2),
			Config: []string{fmt.Sprintf("SetEnv HOME=%s PATH=%s/bin:%s", home, home, os.Getenv("PATH"))}})
		inventory += fmt.Sprintf("  - {name: fw%d, address: %s, port: %d, user: %s, key: %s, host_key: %q, group: edge}\n",
			i+1, s.Address, s.Port, s.User, s.Key, s.HostKey)
		r.homes = append(r.homes, home)
	}
	r.house = newHouse(t, inventory)
	r.master = r.house.master()
	return r
}

// letGoAt lets the stopped step on a host continue.
func (r *recording) letGoAt(i int, name string) {
	if err := os.WriteFile(filepath.Join(r.homes[i], name), nil, 0o600); err != nil {
		r.t.Error(err)
	}
}

// A worker is stopped past its lock while its step is on the way. Its job ends unknown, a person
// clears the group, and the other member is disturbed. When the worker continues, and the step
// arrives, the host itself refuses it, because of the marker that it carries.
func TestAStoppedWorkersLateStepIsRefusedByTheMarker(t *testing.T) {
	t.Parallel()
	r := newLatePair(t)
	t.Cleanup(func() { r.letGoAt(0, "go"); r.letGoAt(1, "go") }) // also if the test fails
	first := r.disturb("fw1", "echo late > ~/late")
	one := &recording{house: r.house, homes: r.homes[:1], master: r.master}
	one.await("at")
	if n := r.marked(); n != 2 {
		t.Fatalf("%d hosts carry a marker, want 2", n)
	}
	r.signal(syscall.SIGSTOP)
	stopped := children(r.master.cmd.Process.Pid)

	r.redis.Do(t, "HDEL", "muster:{default}:locks", "fw1")
	r.redis.Do(t, "ZADD", "muster:{default}:again", "XX", 1, string(first))
	r.redis.Do(t, "PUBLISH", "muster:{default}:wake", "")
	if j := r.awaitJob(first, jobs.Ended); j.Outcome != jobs.Unknown || j.Attempt != 2 {
		t.Fatalf("the first one: %s in attempt %d, %s", j.Outcome, j.Attempt, j.Error)
	}
	if out, code := r.muster("group", "clear", "edge", "--reason", "looked at both"); code != 0 {
		t.Fatalf("clear: exit %d: %s", code, out)
	}
	second := r.disturb("fw2", "echo begun > ~/begun; until test -e ~/go; do sleep .1; done")
	r.awaitIn(1, "begun")

	for _, pid := range stopped {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	r.letGoAt(0, "go")
	r.master.await("carries the marker of job " + string(second))
	r.untouched(0, "late")
	r.letGoAt(1, "go")
	if j := r.awaitJob(second, jobs.Ended); j.Outcome != jobs.Succeeded {
		t.Errorf("the second one: %s, %s", j.Outcome, j.Error)
	}
	r.untouched(0, "late")
	if j := r.awaitJob(first, jobs.Ended); j.Outcome != jobs.Unknown {
		t.Errorf("the late word changed the outcome to %s", j.Outcome)
	}
	started := filepath.Join(r.homes[0], ".local/state/muster-record/*.0.started")
	if files, err := filepath.Glob(started); err != nil || len(files) > 0 {
		t.Errorf("fw1 has started %v, %v", files, err)
	}
}
