package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// up starts an `up` as the server of the house, with a master in the same process.
func (h *house) up(t testing.TB) *process {
	t.Helper()
	h.url = freeSocket(t)
	h.config(nil)
	up := h.start("up", "--config", h.file("muster.yaml"))
	up.await("server listens")
	up.await("master started")
	return up
}

// The children of an earlier master are at work when somebody starts an `up` that cannot listen: it
// must not wait for them before it reports that.
func TestUpWithATakenSocketEndsAtOnce(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 4})
	h := newHouse(t, inventory)
	log, err := os.Create(h.file("first.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	first := h.startTo(log, "master", "--config", h.file("muster.yaml"))
	id := h.submit("all", held)
	h.awaitNode(func(n jobs.Node) bool { return len(n.Children) == 4 })
	orphans := children(first.cmd.Process.Pid)
	first.kill()

	up := h.start("up", "--config", h.file("muster.yaml")) // the house has a server there
	if code := up.end(); code != cli.ExitUsage {
		t.Errorf("exit %d, want %d", code, cli.ExitUsage)
	}
	if n := len(slices.DeleteFunc(orphans, func(pid int) bool { return !isWorker(pid) })); n != 4 {
		t.Errorf("%d orphans are still at work, want 4: it has waited for them", n)
	}
	said := up.log.String()
	if !strings.Contains(said, "another server listens there: process ") || !strings.Contains(said, "server.listen") {
		t.Errorf("it does not say why: %s", said)
	}
	letGo(t, f)
	h.master()
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 4})
}

func TestUpReloadsBoth(t *testing.T) {
	t.Parallel()
	_, before := pretend(t, fakefleet.Config{Hosts: 4})
	_, after := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, before)
	up := h.up(t)
	h.write("fleet.yaml", after)
	h.config(map[string]any{"children": 7})
	up.cmd.Process.Signal(syscall.SIGHUP)
	up.await("configuration reloaded")
	h.awaitNode(func(n jobs.Node) bool { return n.Limit == 7 })
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})

	h.write("fleet.yaml", "hosts: [{nam: x}]\n")
	h.write("muster.yaml", "master: {childen: 7}\n")
	up.cmd.Process.Signal(syscall.SIGHUP)
	up.await("reload: the old configuration stays")
	up.await("configuration refused")
	h.awaitNode(func(n jobs.Node) bool { return strings.Contains(n.Note, "childen") })
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: 10})
}

func TestASecondTermEndsUpNow(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	other := h.url
	up := h.up(t)
	id := h.submit("all", "sleep 30")
	h.awaitTask(id, func(jobs.TaskInfo) bool { return len(f.Log()) >= 4 }) // the commands run on the hosts
	up.cmd.Process.Signal(syscall.SIGTERM)
	up.await("draining")
	h.awaitNode(func(n jobs.Node) bool { return n.State == "draining" }) // its server still answers
	up.cmd.Process.Signal(syscall.SIGTERM)
	if code := up.end(); code != cli.ExitOK {
		t.Errorf("exit %d", code)
	}
	h.url = other
	h.wantStopped(t, id, 4)
	wantNoOverlap(t, f)
}

// wantStopped checks the state of a task whose children were killed: nothing runs, jobs that ran
// are known to be lost, all others wait.
func (h *house) wantStopped(t testing.TB, id jobs.TaskID, ran int) {
	t.Helper()
	count := map[string]int{}
	for _, j := range h.jobs(id) {
		switch {
		case j.State == jobs.Running:
			t.Errorf("%s is said to run, but nobody works on it", j.ID)
		case j.State == jobs.Ended && j.Outcome != jobs.Unknown:
			t.Errorf("%s is said to be %s, but it was cut off", j.ID, j.Outcome)
		}
		count[fmt.Sprint(j.State, " ", j.Attempt > 0)]++
	}
	if lost := h.events()["lost"]; lost != ran {
		t.Errorf("%d jobs are told to be lost, want %d; states %v", lost, ran, count)
	}
}
