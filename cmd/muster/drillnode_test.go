package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/sqltest"
)

// The database is stopped while jobs run: they go on, and history has them when it is back.
func TestDrillOfSQLThatIsAway(t *testing.T) {
	if !drilled(t) {
		return
	}
	p := sqltest.StartPostgres(t)
	f, inventory := pretend(t, fakefleet.Config{Hosts: 6})
	h := newCellar(t, inventory)
	h.configure(map[string]any{"master": map[string]any{"children": 2, "slots": 2},
		"history": map[string]any{"url": p.Config(t).URL}, "audit": map[string]any{"dir": h.file("node/audit")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	t.Cleanup(func() { letGo(t, f) })
	h.awaitHealth("ok")
	id := h.submit("all", marked("lamp"))
	begun := h.inHand(4)
	d := operated(h, "SQL is away", "0wcy7y2fb2", string(id))
	d.units["postgresql"] = &unit{stop: p.Kill, start: func() {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}}
	p.Kill()
	h.server.await("history is not written")
	d.wants(d.play(), "history is not written", begun[0], "running")
	letGo(t, f)
	h.wait(id)
	d.wants(d.play(), "no gaps", "the log is whole")
	wantOutcomes(t, h.task(id), map[jobs.Outcome]int{jobs.Succeeded: 6})
	if past := h.awaitPast(id, 6); len(past) != 6 {
		t.Errorf("history has %d jobs", len(past))
	}
	if ran := d.counted(f, id, "lamp", hostNames(f)); ran != 6 {
		t.Errorf("it ran on %d hosts, want 6", ran)
	}
}

// The file of history is removed while jobs run, as a wrong rm does. The server must say so, and
// nothing runs twice.
func TestDrillOfSQLThatIsLost(t *testing.T) {
	if !drilled(t) {
		return
	}
	h, f, _ := manned(t, 6)
	h.awaitHealth("ok")
	before := h.submit("fw0001", "true")
	h.wait(before)
	h.awaitPast(before, 1)
	h.awaitChecked()
	id := h.submit("all", marked("lamp"))
	h.inHand(4)
	list, err := filepath.Glob(h.file("node/history.db*"))
	if err != nil || len(list) < 3 {
		t.Fatalf("files %v, %v", list, err)
	}
	for _, name := range list {
		if !strings.HasSuffix(name, ".lock") {
			os.Remove(name)
		}
	}
	h.server.await("history is not written")
	d := operated(h, "SQL is lost", "0wcy7y2fb2", string(id))
	d.wants(d.play(), "it is gone")
	letGo(t, f)
	d.wants(d.play(), "fw0001")
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 6})
	d.play()
	h.awaitPast(id, 6)
	h.awaitPast(before, 1)
	if ran := d.counted(f, id, "lamp", hostNames(f)); ran != 6 {
		t.Errorf("it ran on %d hosts, want 6", ran)
	}
	var next jobs.TaskInfo
	if code := h.query(&next, "run", "exec", "all", "--arg", "cmd=: next", "--wait"); code != 0 {
		t.Errorf("afterwards run ends with %d", code)
	}
}

// awaitChecked waits until the audit log has a checkpoint.
func (h *house) awaitChecked() {
	h.t.Helper()
	for late, tick := h.late(), time.Tick(commandEvery); ; {
		if _, err := os.Stat(h.file("node/audit/checkpoint")); err == nil {
			return
		}
		select {
		case <-late:
			h.t.Fatal("there is no checkpoint")
		case <-tick:
			h.muster("health")
		}
	}
}

// fillable starts a house whose node and server write to a small disk, and returns the disk.
func fillable(t *testing.T, inventory string) (h *house, disk string) {
	t.Helper()
	h = newCellar(t, inventory)
	disk = h.file("disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("muster-drill", disk, "tmpfs", 0, "size=16m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	h.configure(map[string]any{"node": map[string]any{"name": "node1", "dir": filepath.Join(disk, "node")},
		"master": map[string]any{"children": 2, "governor": map[string]any{"every": "200ms", "load": 0,
			"pressure": 0, "memory": 0}}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	h.awaitHealth("ok")
	return h, disk
}

// until runs a command until it ends as wanted.
func (h *house) until(as func(code int, words string) bool, args ...string) {
	h.t.Helper()
	for late, tick := h.late(), time.Tick(commandEvery); ; {
		code, out, words := h.plainly("", args...)
		if as(code, out+words) {
			return
		}
		select {
		case <-late:
			h.t.Fatalf("muster %q: exit %d: %s%s", args, code, out, words)
		case <-tick:
		}
	}
}

// The disk of a machine with node and server fills up: the running job ends well, nothing else
// begins, stops are carried out, and afterwards nothing is missing.
func TestDrillOfAFullDisk(t *testing.T) {
	if !drilled(t) {
		return
	}
	f, inventory := pretend(t, fakefleet.Config{Hosts: 3})
	h, disk := fillable(t, inventory)
	t.Cleanup(func() { letGo(t, f) })
	id := h.submit("fw0001", marked("lamp"))
	h.awaitJob(jobs.NewID(id, "fw0001"), jobs.Running)
	fill := filepath.Join(disk, "fill")
	if err := os.WriteFile(fill, make([]byte, 32<<20), 0o600); err == nil {
		t.Fatal("the disk does not fill")
	}
	h.awaitNode(func(n jobs.Node) bool { return n.Governor != nil && n.Governor.Starved })
	h.until(func(_ int, words string) bool {
		return strings.Contains(words, "an order must be in the audit log first")
	}, "exec", "fw0002", "--detach", "--", ": more")
	d := operated(h, "A disk is full")
	d.words = strings.NewReplacer("/var/lib/muster-server", filepath.Join(disk, "node"), "/etc/muster", h.dir)
	d.wants(d.play(), "starved", "disk", "100%")
	if out, code := h.muster("halt", "--reason", "INC-8"); code != 0 {
		t.Errorf("a stop is refused: exit %d, %s", code, out)
	}
	letGo(t, f)
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 1})
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	h.until(func(code int, _ string) bool { return code == 0 }, "resume", "--all", "--reason", "INC-8")
	d.wants(d.play(), "node1", "no gaps", "the log is whole")
	h.awaitPast(id, 1)
	var all []jobs.TaskInfo
	h.query(&all, "tasks")
	for _, task := range all {
		h.wait(task.Task)
	}
	if ran, want := ranTimes(f, ": more"), len(all)-1; ran != want {
		t.Errorf("%d orders were accepted, and the host ran %d", want, ran)
	}
	d.counted(f, id, "lamp", hostNames(f)[:1])
}

// One node has a clock that is five seconds fast. Work that needs a window waits there until the
// clock is right; other work goes on.
func TestDrillOfAWrongClock(t *testing.T) {
	if !drilled(t) {
		return
	}
	f, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newCellar(t, strings.Replace(inventory, "customer: ", "customer: acme # ", 1))
	h.write("upgrade.yaml", strings.Replace(upgradeBook, `run: "true"`, `run: ": upgrade"`, 1))
	h.write("windows.yaml", always)
	h.configure(map[string]any{"runbooks": []string{h.file("upgrade.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	if out, code := h.muster("windows", "apply", h.file("windows.yaml")); code != 0 {
		t.Fatalf("windows apply: exit %d: %s", code, out)
	}
	node := *h
	node.bin = filepath.Join(bin(t), "muster")
	setClock(t, filepath.Dir(node.bin), 5)
	node.master()
	h.awaitNode(func(n jobs.Node) bool { return math.Abs(n.Clock.Skew) > 4 && math.Abs(n.Clock.Skew) < 6 })
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "upgrade", "--on", "all", "--detach"); code != 0 {
		t.Fatalf("run: exit %d", code)
	}
	h.awaitJob(jobs.NewID(task.Task, "fw0001"), jobs.Deferred)
	wantOutcomes(t, h.wait(h.submit("all", ": plain")), map[jobs.Outcome]int{jobs.Succeeded: 1})
	d := drillOf(h, "The clock of a node is wrong", "0wcy7y2fb2", string(task.Task), "fw001", "fw0001")
	// NTP of this node: the command of the page puts the clock of its processes right.
	if err := os.WriteFile(filepath.Join(filepath.Dir(h.bin), "chronyc"), []byte("#!/bin/sh\n"+
		"[ \"$1\" = makestep ] && head -c 8 /dev/zero | dd of="+filepath.Join(filepath.Dir(node.bin), clockFile)+
		" conv=notrunc status=none\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.wants(d.play(), "node1", "clock", "deferred")
	if ran := ranTimes(f, ": upgrade"); ran != 0 {
		t.Errorf("it ran %d times while the clock was wrong", ran)
	}
	d.play()
	h.awaitNode(func(n jobs.Node) bool { return math.Abs(n.Clock.Skew) < 1 })
	wantOutcomes(t, h.task(task.Task), map[jobs.Outcome]int{jobs.Succeeded: 1})
	if ran := d.counted(f, task.Task, "upgrade", hostNames(f)); ran != 1 {
		t.Errorf("it ran on %d hosts, want 1", ran)
	}
}

// drillWork is a runbook whose lock ends soon enough for a drill.
const drillWork = `name: work
timeout: 20s
steps: [{name: work, run: ": lamp; while [ ! -e /tmp/go ]; do sleep 0.02; done"}]
`

// A master and its children are killed for good, with four jobs in hand. Another node does what had
// not begun, and the operator finds out about the rest.
func TestDrillOfALostNode(t *testing.T) {
	if !drilled(t) {
		return
	}
	f, inventory := pretend(t, fakefleet.Config{Hosts: 8})
	h := newCellar(t, inventory)
	h.write("work.yaml", drillWork)
	with := map[string]any{"runbooks": []string{h.file("work.yaml")},
		"master": map[string]any{"children": 2, "slots": 2}}
	h.configure(with)
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	lost := h.master()
	t.Cleanup(func() { letGo(t, f) })
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "work", "all", "--detach"); code != 0 {
		t.Fatalf("run: exit %d", code)
	}
	id := task.Task
	begun := h.inHand(4)
	left := children(lost.cmd.Process.Pid)
	lost.cmd.Process.Kill() // first, or it tells of the end of its children
	for _, pid := range left {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	<-lost.done
	letGo(t, f)
	with["node"] = map[string]any{"name": "node2", "dir": h.file("node2")}
	with["history"] = map[string]any{"url": "sqlite://" + h.file("node/history.db")}
	h.configure(with)
	h.master()
	h.awaitTask(id, func(i jobs.TaskInfo) bool { return i.Outcomes[jobs.Succeeded] == 4 })
	h.awaitGone("node1")
	slices.Sort(begun)
	d := drillOf(h, "A node is lost for good", "0wcy7y2fb2", string(id), "fw001", begun[0])
	d.wants(d.play(), "gone", begun[0], begun[3], "next")
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 4, jobs.Unknown: 4})
	if ran := d.counted(f, id, ": lamp", hostNames(f)); ran != 8 {
		t.Errorf("it ran on %d hosts, want 8", ran)
	}
	d.wants(d.play(), begun[0], begun[3])
	var all []jobs.TaskInfo
	h.query(&all, "tasks")
	for _, one := range all {
		if one.Task != id {
			wantOutcomes(t, h.wait(one.Task), map[jobs.Outcome]int{jobs.Succeeded: 4})
		}
	}
	if n := ranTimes(f, ": lamp"); n != 12 || len(all) != 2 {
		t.Errorf("%d tasks; the hosts ran %d commands, want 8, and 4 again", len(all), n)
	}
	wantNoOverlap(t, f)
}

// awaitGone waits until a node is gone.
func (h *house) awaitGone(name string) {
	h.t.Helper()
	h.lookUntil("the nodes", func(c *cli.Client) (any, bool, error) {
		var l api.NodeList
		err := c.Get(h.t.Context(), "/v1/nodes", nil, &l)
		return l.Nodes, slices.ContainsFunc(l.Nodes, func(n jobs.Node) bool {
			return n.ID == name && n.State == jobs.NodeGone
		}), err
	})
}
