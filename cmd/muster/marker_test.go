package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/sshtest"
)

// newPair is a house whose two hosts are a redundancy group, and keep records. If one is away
// nothing listens at its address.
func newPair(t *testing.T, away bool) *recording {
	t.Helper()
	r := &recording{}
	var inventory strings.Builder
	inventory.WriteString("defaults: {fence: required, customer: acme}\nhosts:\n")
	for i := range 2 {
		s := sshtest.StartSSHD(t, sshtest.Options{Address: fmt.Sprintf("127.0.0.%d", i+2)})
		if away && i == 0 {
			s.Port = 1
		}
		fmt.Fprintf(&inventory, "  - {name: fw%d, address: %s, port: %d, user: %s, key: %s, host_key: %q, group: edge}\n",
			i+1, s.Address, s.Port, s.User, s.Key, s.HostKey)
		r.homes = append(r.homes, filepath.Dir(s.Key))
	}
	r.house = newHouse(t, inventory.String())
	r.master = r.house.master()
	return r
}

// disturb submits a command that disturbs a host, and returns its job.
func (r *recording) disturb(host, cmd string) jobs.ID {
	r.t.Helper()
	var task jobs.TaskInfo
	r.query(&task, "run", "exec", "--on", host, "--disruptive", "--arg", "cmd="+cmd, "--detach")
	return jobs.NewID(task.Task, host)
}

// forget makes Redis lose everything, and thaws the zone as a person as soon as it was frozen. The
// thaw stands, whoever reports later.
func (r *recording) forget() {
	r.t.Helper()
	r.redis.Do(r.t, "FLUSHALL")
	thawed := false
	for late := r.late(); ; {
		out, _ := r.muster("nodes", "thaw", "--zone", "default", "--reason", "we know better")
		thawed = thawed || strings.Contains(out, "no longer frozen")
		if thawed && r.published() {
			return
		}
		select {
		case <-late:
			r.t.Fatalf("the zone is not frozen, or no inventory is published: %s\nthe server says\n%s", out,
				r.server.log)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// published reports whether Redis has what every job needs: an inventory, and the word of a server on
// the timetable.
func (r *recording) published() bool {
	return r.redis.Do(r.t, "EXISTS", "muster:{hub}:inventory") == int64(1) &&
		r.redis.Do(r.t, "HEXISTS", "muster:{hub}:windows", "statement") == int64(1)
}

// awaitDeferred waits until a job did not begin, and gives these reasons.
func (r *recording) awaitDeferred(id jobs.ID, words ...string) {
	r.t.Helper()
	j := r.awaitJob(id, jobs.Deferred)
	for _, w := range words {
		if !strings.Contains(j.Note, w) {
			r.t.Errorf("it says %q, without %q", j.Note, w)
		}
	}
	if j.Attempt != 0 {
		r.t.Errorf("%d attempts count", j.Attempt)
	}
}

// marked returns how many of the hosts carry a marker.
func (r *recording) marked() (n int) {
	for _, home := range r.homes {
		if _, err := os.Stat(filepath.Join(home, ".local/state/muster-record/marker")); err == nil {
			n++
		}
	}
	return n
}

// awaitIn waits until a file is in the home of one host, and returns its content.
func (r *recording) awaitIn(i int, name string) string {
	r.t.Helper()
	one := &recording{house: r.house, homes: r.homes[i : i+1], master: r.master}
	one.await(name)
	text, err := os.ReadFile(filepath.Join(r.homes[i], name))
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// untouched fails the test if a host has seen a command that writes this file.
func (r *recording) untouched(i int, name string) {
	r.t.Helper()
	if _, err := os.Stat(filepath.Join(r.homes[i], name)); err == nil {
		r.t.Errorf("the command ran on fw%d, whose other member is disturbed", i+1)
	}
}

// Redis forgets that one member is being disturbed, and a person lets everything begin again at
// once: the hosts still know.
func TestAGroupThatRedisForgotIsKeptByItsHosts(t *testing.T) {
	t.Parallel()
	r := newPair(t, false)
	release := func() {
		if err := os.WriteFile(filepath.Join(r.homes[0], "go"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(release) // also if the test fails
	r.disturb("fw1", "echo begun > ~/begun; until test -e ~/go; do sleep .1; done; echo done > ~/done")
	r.awaitIn(0, "begun")
	if n := r.marked(); n != 2 {
		t.Errorf("%d hosts carry a marker, want 2", n)
	}
	r.forget()
	second := r.disturb("fw2", "echo done > ~/done")
	r.awaitDeferred(second, "group edge: fw1 carries the marker of job", ":fw1, which disturbs fw1",
		"Redis has forgotten it")
	r.untouched(1, "done")

	// The job that has begun runs to its end, and then its host makes nobody wait any more.
	release()
	r.awaitIn(0, "done")
	if j := r.awaitJob(second, jobs.Ended); j.Outcome != jobs.Succeeded {
		t.Errorf("the second one: %s, %s", j.Outcome, j.Error)
	}
	if n := r.marked(); n != 0 {
		t.Errorf("%d hosts carry a marker when all have ended", n)
	}
}

// killWatched kills a command on its host, and all processes that would note its end.
func killWatched(t *testing.T, pid int) {
	t.Helper()
	list := []int{pid}
	for pid > 1 {
		dir := fmt.Sprintf("/proc/%d/", pid)
		line, err := os.ReadFile(dir + "cmdline")
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(line, []byte("muster-record")) {
			list = append([]int{pid}, list...)
		}
		stat, err := os.ReadFile(dir + "stat")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " %1s %d", new(string), &pid)
	}
	if len(list) < 2 {
		t.Fatal("nobody watches the command")
	}
	for _, p := range list {
		syscall.Kill(p, syscall.SIGKILL)
	}
}

// A job that ended unknown leaves its markers on the hosts, too, until a person has looked.
func TestAnUnknownEndIsKeptByTheHostsUntilTheirGroupIsCleared(t *testing.T) {
	t.Parallel()
	r := newPair(t, false)
	first := r.disturb("fw1", "echo $$ > ~/pid.new; mv ~/pid.new ~/pid; exec sleep 60")
	pid, err := strconv.Atoi(r.awaitIn(0, "pid"))
	if err != nil || pid < 2 {
		t.Fatalf("process %d, %v", pid, err)
	}
	killWatched(t, pid)
	if j := r.awaitJob(first, jobs.Ended); j.Outcome != jobs.Unknown {
		t.Fatalf("the first one: %s, %s", j.Outcome, j.Error)
	}
	if n := r.marked(); n != 2 {
		t.Errorf("%d hosts carry a marker, want 2", n)
	}
	r.forget()
	second := r.disturb("fw2", "echo done > ~/done")
	r.awaitDeferred(second, "fw1 carries the marker of job "+string(first), "muster group clear edge")
	r.untouched(1, "done")

	if out, code := r.muster("group", "clear", "edge", "--reason", "looked at both"); code != 0 {
		t.Fatalf("clear: exit %d: %s", code, out)
	}
	if j := r.awaitJob(second, jobs.Ended); j.Outcome != jobs.Succeeded {
		t.Errorf("the second one: %s, %s", j.Outcome, j.Error)
	}
	if n := r.marked(); n != 0 {
		t.Errorf("%d hosts carry a marker when all have ended", n)
	}
}

// If a member cannot be reached the other one must not be disturbed.
func TestAPairWithOneMemberAwayIsLeftAlone(t *testing.T) {
	t.Parallel()
	r := newPair(t, true)
	second := r.disturb("fw2", "echo done > ~/done")
	r.awaitDeferred(second, "group edge: fw1 could not be marked", "take it out of the group")
	r.untouched(1, "done")
	if n := r.marked(); n != 0 {
		t.Errorf("%d hosts carry a marker of what did not begin", n)
	}
	if out, code := r.muster("cancel", string(second)); code != 0 {
		t.Errorf("cancel: exit %d: %s", code, out)
	}
}
