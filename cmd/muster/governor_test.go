package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster/internal/fakefleet"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/trust"
)

// starving is a house with one master that looks at its machine often.
type starving struct {
	*house
	hosts []string
}

// survives starves the node and relieves it. Meanwhile a running job goes on, and nothing is taken.
func (s *starving) survives(kind string, starve func() (relieve func())) {
	s.t.Helper()
	long := s.submit(s.hosts[0], "sleep 3")
	s.awaitTask(long, func(t jobs.TaskInfo) bool { return s.jobs(long)[0].State == jobs.Running })
	relieve := starve()
	n := s.awaitNode(func(n jobs.Node) bool {
		return n.Governor != nil && n.Governor.Starved && slices.Contains(n.Governor.Kinds, kind)
	})
	s.t.Logf("%s: %s", kind, strings.Join(n.Governor.Why, "; "))
	next := s.submit(s.hosts[1], "true")
	wantOutcomes(s.t, s.wait(long), map[jobs.Outcome]int{jobs.Succeeded: 1})
	if j := s.jobs(next)[0]; j.State != jobs.Queued || j.Attempt != 0 {
		s.t.Errorf("%s: a starved node has taken a job: %s, attempt %d", kind, j.State, j.Attempt)
	}
	if out, _ := s.muster("nodes"); !strings.Contains(out, "starved") || !strings.Contains(out, kind) {
		s.t.Errorf("nodes does not say why nothing is taken:\n%s", out)
	}
	if text := s.metrics(); !strings.Contains(text, fmt.Sprintf("\nmuster_nodes_starved{kind=%q} 1\n", kind)) {
		s.t.Errorf("metrics do not count the node as starved of %s", kind)
	}
	if out, code := s.muster("health"); code == 0 || !strings.Contains(out, "takes nothing") {
		s.t.Errorf("health: exit %d\n%s", code, out)
	}
	relieve()
	wantOutcomes(s.t, s.wait(next), map[jobs.Outcome]int{jobs.Succeeded: 1})
	s.awaitNode(func(n jobs.Node) bool { return n.Governor != nil && !n.Governor.Starved })
}

// A full disk starves a node: it takes nothing, its running job ends well, and afterwards it goes on.
func TestANodeSurvivesAFullDisk(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: a machine needs ten seconds to recover")
	}
	f, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	s := &starving{house: newHouse(t, inventory)}
	for _, h := range f.Hosts() {
		s.hosts = append(s.hosts, h.Name)
	}
	disk := s.file("disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("muster-test", disk, "tmpfs", 0, "size=8m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	s.configure(map[string]any{"node": map[string]any{"name": "node1", "dir": filepath.Join(disk, "node")},
		"master": map[string]any{"children": 2, "governor": map[string]any{"every": "200ms", "load": 0,
			"pressure": 0, "memory": 20}}})
	s.master()
	s.survives("disk", func() func() {
		fill := filepath.Join(disk, "fill")
		if err := os.WriteFile(fill, make([]byte, 16<<20), 0o600); err == nil {
			t.Fatal("the disk does not fill")
		}
		return func() { os.Remove(fill) }
	})
}

// A paused node takes nothing, also after its master has started anew, after Redis has lost the
// order, and when somebody who is no server writes another one. Resumed, it goes on.
func TestAPausedNodeStaysPaused(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newHouse(t, inventory)
	m := h.master()
	host := f.Hosts()[0].Name
	h.node()
	if out, code := h.muster("nodes", "pause", "node1"); code != 2 || out != "" {
		t.Errorf("without a reason: exit %d, %q", code, out)
	}
	if _, code := h.muster("nodes", "pause", "node2", "--reason", "cables"); code == 0 {
		t.Error("an unknown node was paused")
	}
	if out, code := h.muster("nodes", "pause", "node1", "--reason", "new cables"); code != 0 ||
		!strings.Contains(out, "node1 takes nothing more") {
		t.Fatalf("exit %d: %s", code, out)
	}
	paused := func(n jobs.Node) bool {
		return n.State == "running" && n.Paused != nil && strings.Contains(n.Paused.Note, "new cables")
	}
	h.awaitNode(paused)
	id := h.submit(host, "true")
	if out, _ := h.muster("nodes"); !strings.Contains(out, "paused") || !strings.Contains(out, "new cables") {
		t.Errorf("nodes:\n%s", out)
	}

	m.cmd.Process.Signal(syscall.SIGTERM)
	<-m.done
	const key = "muster:{hub}:nodeorders"
	if n := h.redis.Do(t, "HDEL", key, "node1"); n != int64(1) {
		t.Fatalf("%v orders deleted", n)
	}
	m = h.master()
	h.awaitNode(paused)
	forged, err := trust.NodeOrder{Node: "node1", Number: math.MaxInt64}.Sign(serverkey.Keys{})
	if err != nil {
		t.Fatal(err)
	}
	h.redis.Do(t, "HSET", key, "node1", forged)
	h.redis.Do(t, "PUBLISH", "muster:{default}:wake", "orders")
	m.await("it is not what a server has signed")
	if j := h.jobs(id)[0]; j.State != jobs.Queued || j.Attempt != 0 {
		t.Errorf("a paused node has taken a job: %s, attempt %d", j.State, j.Attempt)
	}
	h.awaitNode(paused)
	if out, code := h.muster("nodes", "resume", "node1", "--reason", "they are in"); code != 0 {
		t.Fatalf("exit %d: %s", code, out)
	}
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 1})
	h.awaitNode(func(n jobs.Node) bool { return n.Paused == nil })
	if out, _ := h.muster("audit", "ls", "--verb", "node.*"); !strings.Contains(out, "node.pause") ||
		!strings.Contains(out, "node.resume") {
		t.Errorf("the audit log:\n%s", out)
	}
}
