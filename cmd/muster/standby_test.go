package main

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster/jobs"
)

// The runbooks of a house that loses a node: a lock lasts half a minute, not five.
const briefBooks = `name: mark
arguments: {word: {type: string}}
timeout: 15s
steps: [{name: a, run: ": {{word}}"}]
---
name: hold
arguments: {word: {type: string}}
timeout: 15s
steps: [{name: a, run: ": {{word}}; while [ ! -e /tmp/go ]; do sleep 0.02; done"}]
`

// A zone loses its only node, with all of its processes and in the middle of a job: after a time
// another node serves the zone, and when the first one has been back for that time, it leaves the
// zone to it. By the hosts' log nothing runs twice, also not what nobody knows the end of.
func TestDrillOfANodeThatStandsIn(t *testing.T) {
	if !*wholeDrill {
		return // make drill asks for it: it takes two minutes
	}
	t.Parallel()
	f, h, abroad := inZones(t, 12)
	h.zone = "all"
	mark, hold, _ := strings.Cut(briefBooks, "---\n")
	h.write("mark.yaml", mark)
	h.write("hold.yaml", hold)
	submit := func(runbook, on, word string) jobs.TaskID {
		var info jobs.TaskInfo
		if code := h.query(&info, "run", runbook, "--on", on, "--arg", "word="+word, "--detach"); code != 0 {
			t.Fatalf("muster run %s: exit %d", runbook, code)
		}
		return info.Task
	}
	h.configure(map[string]any{"runbooks": []string{h.file("mark.yaml"), h.file("hold.yaml")}})
	h.server.cmd.Process.Signal(syscall.SIGHUP)
	h.server.await("reloaded")
	node := func(name string, master map[string]any) *process {
		h.configure(map[string]any{"node": map[string]any{"name": name, "dir": h.file(name)}, "master": master})
		return h.master()
	}
	node("stands", map[string]any{"zones": []string{"default"}, "standby": []string{"eu=30s"}})
	own := map[string]any{"zones": []string{"eu"}}
	first := node("own", own)

	// Four tasks: before, during, while the other one serves, and afterwards.
	before := submit("mark", "all", "before")
	wantOutcomes(t, h.wait(before), map[jobs.Outcome]int{jobs.Succeeded: 12})
	lost := submit("hold", abroad[0], "lost")
	h.awaitJob(jobs.NewID(lost, abroad[0]), jobs.Running)
	killNode(t, first)
	during := submit("mark", "all", "during")

	h.awaitNodes(func(n jobs.Node) bool { return n.ID == "stands" && slices.Contains(n.Standby, "eu") })
	wantNodes(h, before, abroad, "own")
	h.awaitTask(during, func(t jobs.TaskInfo) bool { return t.Outcomes[jobs.Succeeded] >= 11 })
	letGo(t, f, abroad[0])
	wantOutcomes(t, h.wait(during), map[jobs.Outcome]int{jobs.Succeeded: 12})
	wantNodes(h, during, abroad, "stands")
	wantOutcomes(t, h.wait(lost), map[jobs.Outcome]int{jobs.Unknown: 1})

	node("own", own)
	h.awaitNodes(func(n jobs.Node) bool { return n.ID == "stands" && len(n.Standby) == 0 })
	after := submit("mark", "all", "after")
	wantOutcomes(t, h.wait(after), map[jobs.Outcome]int{jobs.Succeeded: 12})
	wantNodes(h, after, abroad, "own")

	ran := map[string]int{}
	for _, e := range f.Log() {
		for _, word := range []string{"before", "lost", "during", "after"} {
			if strings.Contains(e.Command, word) && !e.Stops {
				ran[word]++
			}
		}
	}
	if ran["before"] != 12 || ran["lost"] != 1 || ran["during"] != 12 || ran["after"] != 12 {
		t.Errorf("the hosts ran %v", ran)
	}
	wantNoOverlap(t, f)
}

// killNode kills a master and all of its children at once, as a machine dies.
func killNode(t *testing.T, master *process) {
	t.Helper()
	list := children(master.cmd.Process.Pid)
	for _, pid := range append([]int{master.cmd.Process.Pid}, list...) {
		err := syscall.Kill(pid, syscall.SIGKILL)
		if err != nil && !errors.Is(err, syscall.ESRCH) { // a child without its master may have ended
			t.Fatal(err)
		}
	}
	<-master.done
}

// awaitNodes reads the nodes until one of them is as wanted.
func (h *house) awaitNodes(as func(jobs.Node) bool) {
	h.t.Helper()
	for late := h.late(); ; {
		var list []jobs.Node
		h.query(&list, "nodes")
		if slices.ContainsFunc(list, as) {
			return
		}
		select {
		case <-late:
			h.t.Fatalf("the nodes stay %+v", list)
		default:
		}
	}
}

// wantNodes asks of the jobs of a task on hosts of a zone that all of them ran on one node.
func wantNodes(h *house, id jobs.TaskID, hosts []string, node string) {
	h.t.Helper()
	for _, j := range h.jobs(id) {
		if slices.Contains(hosts, j.Host) && !strings.HasPrefix(j.Node, node+"/") {
			h.t.Errorf("%s of task %s ran on node %s, want %s", j.Host, id, j.Node, node)
		}
	}
}
