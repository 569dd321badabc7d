package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

func TestASecondTermEndsNow(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 6})
	h := newHouse(t, inventory)
	m := h.master()
	id := h.submit("all", held)
	h.awaitTask(id, func(jobs.TaskInfo) bool { return len(f.Log()) >= 4 }) // the commands run on the hosts
	workers := children(m.cmd.Process.Pid)
	m.cmd.Process.Signal(syscall.SIGTERM)
	m.await("draining")
	m.cmd.Process.Signal(syscall.SIGTERM)
	if code := m.end(); code != cli.ExitOK {
		t.Errorf("exit %d", code)
	}
	for _, pid := range workers {
		if isWorker(pid) {
			t.Errorf("child %d is still there", pid)
		}
	}
	h.wantStopped(t, id, 4)

	letGo(t, f)
	h.master()
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 2, jobs.Unknown: 4})
	for _, j := range h.jobs(id) {
		if j.Outcome == jobs.Unknown && !strings.Contains(j.Error, "node1") {
			t.Errorf("%s is unknown, and it is not said why: %q", j.ID, j.Error)
		}
	}
	wantNoOverlap(t, f)
}

func TestReloadChangesZonesAndSlots(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	// The second half is in a zone of its own.
	lines := strings.SplitAfter(inventory, "\n")
	for i := len(lines) / 2; i < len(lines); i++ {
		lines[i] = strings.Replace(lines[i], "zone: default", "zone: dmz", 1)
	}
	h := newHouse(t, strings.Join(lines, ""), "dmz")
	m := h.master()
	reload := func(keys map[string]any) {
		h.config(keys)
		m.cmd.Process.Signal(syscall.SIGHUP)
	}
	first := h.submit("all", "sleep 1")
	m.await("child ended")
	h.awaitTask(first, func(i jobs.TaskInfo) bool { return i.Outcomes[jobs.Succeeded] == 5 })
	if i := h.task(first); i.Outcomes.Sum() != 5 {
		t.Errorf("%v, want nothing of the zone that nobody works for", i.Outcomes)
	}

	reload(map[string]any{"zones": []string{"default", "dmz"}, "slots": 2, "children": 2})
	wantOutcomes(t, h.wait(first), map[jobs.Outcome]int{jobs.Succeeded: 10})
	second := h.submit("all", held)
	h.awaitNode(func(n jobs.Node) bool {
		return n.Slots == 2 && len(n.Zones) == 2 && len(n.Children) == 2 &&
			len(n.Children[0].Jobs) == 2 && len(n.Children[1].Jobs) == 2
	})

	// Jobs in hand of a zone end, even if the node no longer works for the zone.
	reload(map[string]any{"zones": []string{"dmz"}, "slots": 1})
	h.awaitNode(func(n jobs.Node) bool { return n.Slots == 1 && fmt.Sprint(n.Zones) == "[dmz]" })
	letGo(t, f)
	h.awaitTask(second, func(i jobs.TaskInfo) bool { return i.Outcomes.Sum() >= 7 })
	if i := h.task(second); i.Outcomes[jobs.Succeeded] != i.Outcomes.Sum() {
		t.Errorf("%v, want nothing lost", i.Outcomes)
	}
	reload(nil)
	wantOutcomes(t, h.wait(second), map[jobs.Outcome]int{jobs.Succeeded: 10})
}

// The disk of node.dir is full: nothing can be written there, not even the owner of a slot. The
// locks need no space.
func TestAFullDiskForNodeDirStopsNothing(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 5})
	h := newHouse(t, inventory)
	good := h.bin
	h.bin = filepath.Join(t.TempDir(), "muster")
	script := "#!/bin/sh\nulimit -S -f 0\nexec " + good + " \"$@\"\n"
	if err := os.WriteFile(h.bin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(h.file("first.log")) // a pipe would stay open until the orphans close it
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	m := h.startTo(log, "master", "--config", h.file("muster.yaml"))
	h.bin = good
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 5})
	h.awaitNode(func(n jobs.Node) bool { return strings.Contains(n.Note, "node.dir cannot be written: ") })

	// The children outlive their master, whether anybody knows of them or not.
	id := h.submit("all", held)
	h.awaitNode(func(n jobs.Node) bool { return len(n.Children) == 4 })
	m.kill()
	second := h.master()
	second.await("orphan found")
	letGo(t, f)
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 5})
	wantNoOverlap(t, f)

	limit := func(size string) {
		out, err := exec.Command("prlimit", "--pid", fmt.Sprint(second.cmd.Process.Pid), "--fsize="+size).CombinedOutput()
		if err != nil {
			t.Fatalf("prlimit: %v: %s", err, out)
		}
	}
	limit("0:unlimited")
	h.wait(h.submit("all", "true"))
	h.awaitNode(func(n jobs.Node) bool { return n.Note != "" })
	limit("unlimited:unlimited")
	h.wait(h.submit("all", "true"))
	h.awaitNode(func(n jobs.Node) bool { return n.Note == "" })
}
