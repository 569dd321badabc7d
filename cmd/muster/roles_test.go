package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/redistest"
)

func TestASecondMasterOfANodeNamesTheFirst(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	first := h.master()
	second := h.start("master", "--config", h.file("muster.yaml"))
	if code := second.end(); code != cli.ExitUsage {
		t.Errorf("exit %d, want %d", code, cli.ExitUsage)
	}
	if pid := fmt.Sprint(first.cmd.Process.Pid); !strings.Contains(second.log.String(), pid) {
		t.Errorf("it does not name pid %s: %s", pid, second.log)
	}
}

func TestDrainLeavesTrueStates(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 40})
	h := newHouse(t, inventory)
	m := h.master()
	id := h.submit("all", "sleep 1")
	m.awaitTimes("child started", 4)
	m.cmd.Process.Signal(syscall.SIGTERM)
	if code := m.end(); code != 0 {
		t.Errorf("exit %d after a drain", code)
	}
	states := map[jobs.State]int{}
	for _, j := range h.jobs(id) {
		states[j.State]++
		if j.State == jobs.Ended && j.Outcome != jobs.Succeeded {
			t.Errorf("%s is %s: %s", j.ID, j.Outcome, j.Error)
		}
	}
	if states[jobs.Running] != 0 || states[jobs.Ended] == 0 || states[jobs.Queued] == 0 {
		t.Errorf("after the drain: %v", states)
	}
	h.master()
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 40})
	wantNoOverlap(t, f)
}

func TestUpgradeInPlaceUnderLoad(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 60})
	h := newHouse(t, inventory)
	m := h.master()
	id := h.submit("all", "sleep 0.5")
	m.awaitTimes("child started", 4)
	pid := h.node().PID

	h.otherBinary()()
	m.cmd.Process.Signal(syscall.SIGUSR2)
	m.awaitTimes("master started", 2)
	m.cmd.Process.Signal(syscall.SIGHUP) // handled after the exec, too
	m.await("configuration reloaded")
	done := h.wait(id)
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Succeeded: 60})
	n := h.node()
	if n.PID != pid || n.Version != strings.TrimSpace(otherVersion) {
		t.Errorf("pid %d and version %q, want %d and %q", n.PID, n.Version, pid, otherVersion)
	}
	wantNoOverlap(t, f)
}

func TestABrokenBinaryIsRefused(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	m := h.master()
	broken := []byte("#!/bin/sh\necho no such library >&2; exit 127\n")
	if err := os.WriteFile(h.bin+".new", broken, 0o755); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(t.TempDir(), "muster")
	if err := os.Rename(h.bin, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(h.bin+".new", h.bin); err != nil {
		t.Fatal(err)
	}
	m.cmd.Process.Signal(syscall.SIGUSR2)
	m.await("no such library")
	h.bin = old // for the operator; the node has only the broken file
	n := h.awaitNode(func(n jobs.Node) bool { return n.Note != "" })
	if !strings.Contains(n.Note, "no such library") {
		t.Errorf("note %q", n.Note)
	}
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
}

func TestABadReloadKeepsTheOldConfiguration(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	m := h.master()
	h.write("muster.yaml", "master: {childen: 7}\n")
	m.cmd.Process.Signal(syscall.SIGHUP)
	m.await("childen")
	n := h.awaitNode(func(n jobs.Node) bool { return n.Note != "" })
	if n.Limit != 4 || !strings.Contains(n.Note, "childen") {
		t.Errorf("limit %d, note %q", n.Limit, n.Note)
	}
	h.config(map[string]any{"children": 7})
	m.cmd.Process.Signal(syscall.SIGHUP)
	m.await("configuration reloaded")
	if n = h.awaitNode(func(n jobs.Node) bool { return n.Limit != 4 }); n.Limit != 7 || n.Note != "" {
		t.Errorf("limit %d, note %q", n.Limit, n.Note)
	}
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
}

// The user of a node has the zones of that node. One more zone is refused at once, with advice;
// once it was accepted, and every call there failed.
func TestAReloadThatAddsAZoneWithoutItsUserIsRefused(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	m := h.master()
	h.config(map[string]any{"zones": []string{"default", "dmz"}, "children": 7})
	m.cmd.Process.Signal(syscall.SIGHUP)
	m.await("muster acl --user muster-node-NAME --zone default --zone dmz")
	n := h.awaitNode(func(n jobs.Node) bool { return n.Note != "" })
	if n.Limit != 4 || fmt.Sprint(n.Zones) != "[default]" || !strings.Contains(n.Note, "may not work for dmz") {
		t.Errorf("limit %d, zones %v, note %q", n.Limit, n.Zones, n.Note)
	}
	h.config(map[string]any{"children": 7})
	m.cmd.Process.Signal(syscall.SIGHUP)
	n = h.awaitNode(func(n jobs.Node) bool { return n.Limit == 7 && n.Note == "" })
	if fmt.Sprint(n.Zones) != "[default]" {
		t.Errorf("zones %v", n.Zones)
	}
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
}

// A Redis that cannot be asked is another case than a user without the right.
func TestAZoneIsNotGivenToANodeWhileNobodyCanTellIfItMay(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("%w 192.0.2.1:6379: permissions: connection refused", queue.ErrRedis)
	z := &zoneGuard{permitting{away}, time.Second, []string{"default"}}
	if err := z.check([]string{"default"}); err != nil {
		t.Errorf("without a new zone: %v", err)
	}
	if err := z.check([]string{"default", "dmz"}); err == nil || !strings.Contains(err.Error(), "send HUP again") {
		t.Errorf("Redis is away: %v", err)
	}
	z.queue = permitting{nil}
	if err := z.check([]string{"dmz"}); err != nil {
		t.Errorf("the user has the zone: %v", err)
	}
	z.queue = permitting{away}
	if err := z.check([]string{"dmz", "default"}); err != nil {
		t.Errorf("what was found once is asked again: %v", err)
	}
}

// permitting answers as a Redis would.
type permitting struct{ err error }

func (p permitting) Permits(context.Context, []string) error { return p.err }

func TestAFullDiskForLogsStopsNothing(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	m := h.startTo(full, "master", "--config", h.file("muster.yaml"))
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
	m.cmd.Process.Signal(syscall.SIGTERM)
	if code := m.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestUpIsServerAndMaster(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 20})
	h := newHouse(t, inventory)
	h.url = freeSocket(t)
	h.config(map[string]any{"slots": 4})
	up := h.start("up", "--config", h.file("muster.yaml"))
	up.await("server listens")
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 20})
	up.cmd.Process.Signal(syscall.SIGTERM)
	if code := up.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestASecondMasterOfTheSameNameElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	first := h.master()
	h.awaitNode(func(n jobs.Node) bool { return n.PID == first.cmd.Process.Pid })
	second := h.start("master", "--config", h.file("muster.yaml"), "--node-dir", h.file("elsewhere"))
	if code := second.end(); code != cli.ExitUsage {
		t.Errorf("exit %d, want %d", code, cli.ExitUsage)
	}
	if said := second.log.String(); !strings.Contains(said, fmt.Sprint("pid ", first.cmd.Process.Pid)) {
		t.Errorf("it does not name the first: %s", said)
	}
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
}

func TestAReloadCannotChangeTheRedis(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	m := h.master()
	other := redistest.StartServer(t)
	mine := h.redis
	h.redis = other
	h.config(nil)
	h.redis = mine
	m.cmd.Process.Signal(syscall.SIGHUP)
	m.await("only a restart can do that")
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
}

func TestWorkersShareTheCores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ cores, children, want int }{
		{2, 1, 2}, {2, 2, 2}, {2, 3, 2}, {2, 4, 1}, {2, 16, 1}, {64, 16, 8}, {64, 1, 64}, {64, 1000, 1}, {4, 0, 4},
	} {
		if got := threadsOf(c.cores, c.children); got != c.want {
			t.Errorf("%d children on %d cores: %d threads each, want %d", c.children, c.cores, got, c.want)
		}
	}
	want := fmt.Sprintf("GOMAXPROCS=%d", threadsOf(runtime.GOMAXPROCS(0), 1000))
	if env := workerEnv(1000); !slices.Contains(env, want) {
		t.Errorf("a worker gets %q, want %s in it", env, want)
	}
}
