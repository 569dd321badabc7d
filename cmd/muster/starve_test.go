package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/fakefleet"
)

// A controlGroup bounds processes of a test, and two groups below it: the node, and those that
// starve it.
type controlGroup struct {
	t    *testing.T
	dirs []string // one, or in version 1 one for each controller
	two  bool     // of version 2
}

// newControlGroup makes a control group. It needs root, and control groups that can be written.
func newControlGroup(t *testing.T) *controlGroup {
	t.Helper()
	const root = "/sys/fs/cgroup"
	g, name := &controlGroup{t: t}, fmt.Sprintf("muster-test-%d-%s", os.Getpid(), strings.ToLower(t.Name()))
	if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
		g.two, g.dirs = true, []string{filepath.Join(root, name)}
		g.must(os.WriteFile(root+"/cgroup.subtree_control", []byte("+pids +memory"), 0))
	} else {
		g.dirs = []string{filepath.Join(root, "pids", name), filepath.Join(root, "memory", name)}
	}
	t.Cleanup(g.remove)
	for _, dir := range g.dirs {
		g.must(os.Mkdir(dir, 0o755))
		if g.two {
			g.must(os.WriteFile(dir+"/cgroup.subtree_control", []byte("+pids +memory"), 0))
		}
		for _, part := range []string{"node", "others"} {
			g.must(os.Mkdir(filepath.Join(dir, part), 0o755))
		}
	}
	return g
}

func (g *controlGroup) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatalf("this test needs root and control groups: %v", err)
	}
}

// limit sets a limit of the whole group, by its name in version 2.
func (g *controlGroup) limit(name string, n int) { g.set("", name, n) }

func (g *controlGroup) set(part, name string, n int) {
	g.t.Helper()
	dir := g.dirs[0]
	if name == "memory.max" && !g.two {
		dir, name = g.dirs[1], "memory.limit_in_bytes"
	}
	g.must(os.WriteFile(filepath.Join(dir, part, name), []byte(strconv.Itoa(n)), 0))
}

// take puts a process, and all that it will start, into a part of the group.
func (g *controlGroup) take(part string, pid int) {
	g.t.Helper()
	for _, dir := range g.dirs {
		g.must(os.WriteFile(filepath.Join(dir, part, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0))
	}
}

// others starts a shell among those that starve the node. It begins once it is in its group, and
// gives way to all others of the machine.
func (g *controlGroup) others(text string) {
	g.t.Helper()
	r, w, err := os.Pipe()
	g.must(err)
	defer w.Close()
	cmd := exec.Command("nice", "-n", "19", "sh", "-c", "read go || exit 1; "+text)
	cmd.Stdin = r
	g.must(cmd.Start())
	r.Close()
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	g.t.Cleanup(func() { g.end("others"); <-done })
	g.take("others", cmd.Process.Pid)
	if _, err := w.WriteString("go\n"); err != nil {
		g.t.Fatal(err)
	}
}

// end kills all processes in a part of the group; none of them starts another meanwhile.
func (g *controlGroup) end(part string) {
	g.t.Helper()
	g.set(part, "pids.max", 0)
	for tick := time.Tick(10 * time.Millisecond); ; <-tick {
		left := g.pids(part)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// pids lists the processes of a part of the group.
func (g *controlGroup) pids(part string) (all []int) {
	text, err := os.ReadFile(filepath.Join(g.dirs[0], part, "cgroup.procs"))
	if err != nil {
		g.t.Error(err)
	}
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// remove removes the group once it is empty: the kernel needs a moment for processes that ended.
func (g *controlGroup) remove() {
	late := time.Now().Add(30 * time.Second)
	for _, dir := range g.dirs {
		for _, part := range []string{"node", "others", ""} {
			for tick := time.Tick(10 * time.Millisecond); ; <-tick {
				err := os.Remove(filepath.Join(dir, part))
				if err == nil || errors.Is(err, os.ErrNotExist) {
					break
				}
				if time.Now().After(late) {
					g.t.Errorf("the control group stays: %v", err)
					return
				}
			}
		}
	}
}

// starvingGroup is a house whose node is in a control group with a limit.
func starvingGroup(t *testing.T, limit string, n int) (*starving, *controlGroup, *process) {
	t.Helper()
	t.Parallel()
	g := newControlGroup(t)
	f, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	s := &starving{house: newHouse(t, inventory)}
	for _, h := range f.Hosts() {
		s.hosts = append(s.hosts, h.Name)
	}
	s.config(map[string]any{"children": 2, "governor": map[string]any{"every": "200ms", "load": 0,
		"pressure": 0, "memory": 20}})
	m := s.start("master", "--config", s.file("muster.yaml"))
	g.take("node", m.cmd.Process.Pid)
	g.limit(limit, n)
	m.await("master started")
	t.Cleanup(func() {
		wantNoOverlap(t, f)
		if text := m.log.String(); strings.Contains(text, "failed to create new OS thread") {
			t.Errorf("the master died of it:\n%s", text)
		}
	})
	return s, g, m
}

// A fork bomb takes all processes of the group in which the node is too: the node takes nothing,
// ends what it has, and goes on when the bomb is gone.
func TestDrillOfAForkBomb(t *testing.T) {
	if !*wholeDrill {
		return // make drill asks for it
	}
	s, g, m := starvingGroup(t, "pids.max", 300)
	pid := m.cmd.Process.Pid
	s.survives("pids", func() func() {
		g.others("b() { b | b & }; b")
		return func() { g.end("others") }
	})
	if n := s.node(); n.PID != pid {
		t.Errorf("another master works: pid %d, it was %d", n.PID, pid)
	}
}

// A program that takes memory until the group has hardly any starves the node; it goes on when the
// memory is there again.
func TestDrillOfAMemoryHog(t *testing.T) {
	if !*wholeDrill {
		return // make drill asks for it
	}
	s, g, m := starvingGroup(t, "memory.max", 512<<20)
	pid := m.cmd.Process.Pid
	s.survives("memory", func() func() {
		g.others("{ head -c 400M /dev/zero; sleep 600; } | tail -n 1") // tail keeps a line in memory
		return func() { g.end("others") }
	})
	if n := s.node(); n.PID != pid {
		t.Errorf("another master works: pid %d, it was %d", n.PID, pid)
	}
}
