package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/internal/fakefleet"
	"muster/internal/proc"
	"muster/jobs"
	"muster/testkit/redistest"
)

// An upgrade replaces a healthy process by one that must work in the same circumstances: Redis may
// be away.
func TestUpgradeWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 20})
	h := newHouse(t, inventory)
	h.redis.Do(t, "CONFIG", "SET", "appendfsync", "always") // or kill -9 may lose a second
	m := h.master()
	id := h.submit("all", "sleep 2")
	m.awaitTimes("child started", 4)
	h.redis.Kill()
	m.cmd.Process.Signal(syscall.SIGUSR2)
	m.awaitTimes("master started", 2)
	m.await("no answer, asking again")
	if err := h.redis.Start(); err != nil {
		t.Fatal(err)
	}
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 20})
	if n := h.node(); n.PID != m.cmd.Process.Pid {
		t.Errorf("pid %d, want %d", n.PID, m.cmd.Process.Pid)
	}
	if strings.Contains(m.log.String(), "orphan found") {
		t.Error("the children became orphans")
	}
	wantNoOverlap(t, f)
}

func TestUpgradeIsRefusedWhereTheNextWouldEnd(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	m := h.master()
	good := func() { h.config(nil) }
	other := redistest.StartServer(t)
	for _, test := range []struct {
		spoil func()
		want  string
	}{
		{func() { h.write("muster.yaml", "master: {childen: 7}\n") }, "unknown key master.childen"},
		{func() { h.write("muster.yaml", "{") }, "muster.yaml:1: not YAML"},
		{func() {
			mine := h.redis
			h.redis = other
			h.config(nil)
			h.redis = mine
		}, "redis.url changes: only a restart can do that"},
		{func() { h.config(map[string]any{"slots": 0}) }, "master.slots = 0"},
		{func() { h.rename("node2") }, "node.name changes from node1 to node2: only a restart can do that"},
	} {
		test.spoil()
		m.cmd.Process.Signal(syscall.SIGUSR2)
		n := h.awaitNode(func(n jobs.Node) bool { return strings.Contains(n.Note, test.want) })
		if n.PID != m.cmd.Process.Pid || !strings.HasPrefix(n.Note, "upgrade refused: ") {
			t.Errorf("pid %d, note %q", n.PID, n.Note)
		}
		m.await(test.want)
		good()
		wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
	}
	m.cmd.Process.Signal(syscall.SIGUSR2)
	m.awaitTimes("master started", 2)
	h.awaitNode(func(n jobs.Node) bool { return n.Note == "" })
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
}

// The configuration may be spoiled between the trial and the exec.
func TestTakingOverWaitsForAConfiguration(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	takesOverOnceMended(t, h, "{", "not YAML")
}

// The children of a master work for the Redis of the binary before.
func TestTakingOverKeepsToItsRedis(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	mine := h.redis
	h.redis = redistest.StartServer(t)
	h.config(nil)
	other, err := os.ReadFile(h.file("muster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	h.redis = mine
	h.config(nil)
	takesOverOnceMended(t, h, string(other), "redis.url changes: only a restart can do that")
}

// takesOverOnceMended upgrades a master by a binary whose trial leaves this configuration behind,
// and checks that the binary names the mistake, waits, and takes over when it is mended.
func takesOverOnceMended(t *testing.T, h *house, spoiled, want string) {
	t.Helper()
	m := h.master()
	bad := filepath.Join(t.TempDir(), "muster.yaml")
	if err := os.WriteFile(bad, []byte(spoiled), 0o600); err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(t.TempDir(), "muster")
	if err := os.Rename(h.bin, real); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nfor a; do last=$a; done\n"+
		"if [ $last != --check ]; then exec %s \"$@\"; fi\n"+
		"%s \"$@\" && cp %s %s\n", real, real, bad, h.file("muster.yaml"))
	if err := os.WriteFile(h.bin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	m.cmd.Process.Signal(syscall.SIGUSR2)
	m.await("waits for a configuration")
	m.await(want)
	h.config(nil)
	m.awaitTimes("master started", 2)
	h.bin = real
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
}

func TestRolesThatCannotBeUpgradedSaySo(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	h.url = freeSocket(t)
	h.config(nil)
	up := h.start("up", "--config", h.file("muster.yaml"))
	up.await("server listens")
	up.cmd.Process.Signal(syscall.SIGUSR2)
	up.await("up cannot be upgraded in place")

	said := newWatched()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(said, r)
	tied, err := proc.NewParent().Start(proc.Spec{Path: h.bin, Env: os.Environ(), Stderr: w,
		Args: []string{"master", "--config", h.file("muster.yaml"), "--with-parent",
			"--node", "tied", "--node-dir", h.file("tied")}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	tiedEnded := make(chan struct{})
	go func() {
		tied.Wait()
		close(tiedEnded)
	}()
	t.Cleanup(func() {
		tied.Conn.Close() // its parent is gone
		<-tiedEnded
	})
	tiedTo := &process{t: t, name: "tied master", log: said, done: tiedEnded}
	tiedTo.await("master started")
	if err := syscall.Kill(tied.PID, syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	tiedTo.await("ends with its parent cannot be upgraded")
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
}
