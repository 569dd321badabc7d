package main

import (
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/jobs"
)

// fourByFour is a master with four children of four slots.
var fourByFour = map[string]any{"children": 4, "slots": 4}

// killing kills a child of a master at random, until stop is called. Each time it waits a tenth
// longer than before, so that the children of a slow machine get through at last. stop returns how
// many it has killed.
func killing(master *process, every time.Duration) (stop func() int) {
	quit, killed := make(chan struct{}), make(chan int)
	go func() {
		n := 0
		for {
			select {
			case <-quit:
				killed <- n
				return
			case <-time.After(every):
				every += every / 10
				if pids := children(master.cmd.Process.Pid); len(pids) > 0 {
					syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGKILL)
					n++
				}
			}
		}
	}()
	return func() int {
		close(quit)
		return <-killed
	}
}

func TestKilledChildrenWithSlotsLoseNothing(t *testing.T) {
	t.Parallel()
	const hosts = 240
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newHouse(t, inventory)
	h.config(fourByFour)
	m := h.master()
	id := h.submit("all", "sleep 0.3")
	m.awaitTimes("child started", 4)
	stop := killing(m, 300*time.Millisecond)
	done := h.wait(id)
	kills := stop()

	ends, lost := map[string]int{}, 0
	for _, e := range h.happened() {
		switch e.Event {
		case "end":
			ends[e.Object]++
		case "lost":
			lost++
		}
	}
	t.Logf("%d kills took %d jobs with them; outcomes %v in %.1f s", kills, lost, done.Outcomes, done.Seconds)
	if len(ends) != hosts {
		t.Errorf("%d jobs have ended, want %d", len(ends), hosts)
	}
	for job, n := range ends {
		if n != 1 {
			t.Errorf("job %s has ended %d times", job, n)
		}
	}
	unknown := done.Outcomes[jobs.Unknown]
	if done.Outcomes[jobs.Succeeded]+unknown != hosts {
		t.Errorf("outcomes are %v, want succeeded and unknown only", done.Outcomes)
	}
	if lost < 8 || lost > kills*4 || unknown > lost {
		t.Errorf("%d kills, %d lost jobs, %d unknown: want at least 8 lost, at most 4 a kill, "+
			"and no more unknown", kills, lost, unknown)
	}
	seen := f.Stats()
	if seen.Commands > hosts {
		t.Errorf("%d commands on %d hosts: something ran twice", seen.Commands, hosts)
	}
	wantNoOverlap(t, f)
}

func TestDrainAndUpgradeWithSlots(t *testing.T) {
	t.Parallel()
	const hosts = 120
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newHouse(t, inventory)
	h.config(fourByFour)
	m := h.master()
	id := h.submit("all", held)
	h.awaitNode(func(n jobs.Node) bool { return jobsInHand(n) > 8 })
	m.cmd.Process.Signal(syscall.SIGTERM)
	m.await("draining")
	for i := range hosts / 2 { // jobs come in the order of their hosts: the others stay held
		letGo(t, f, nameOf(i))
	}
	if code := m.end(); code != 0 {
		t.Errorf("exit %d after a drain", code)
	}
	states := map[jobs.State]int{}
	for _, j := range h.jobs(id) {
		states[j.State]++
		if j.State == jobs.Ended && j.Outcome != jobs.Succeeded || j.State == jobs.Queued && j.Attempt != 0 {
			t.Errorf("%s is %s, %s after %d attempts: %s", j.ID, j.State, j.Outcome, j.Attempt, j.Error)
		}
	}
	if states[jobs.Ended] < 9 || states[jobs.Queued] == 0 || states[jobs.Ended]+states[jobs.Queued] != hosts {
		t.Errorf("after the drain: %v", states)
	}

	replace := h.otherBinary()
	m = h.master()
	h.awaitNode(func(n jobs.Node) bool { return jobsInHand(n) > 8 })
	replace()
	m.cmd.Process.Signal(syscall.SIGUSR2)
	m.awaitTimes("master started", 2)
	letGo(t, f)
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	if n := h.node(); n.PID != m.cmd.Process.Pid || n.Version != strings.TrimSpace(otherVersion) {
		t.Errorf("pid %d and version %q, want %d and %q", n.PID, n.Version, m.cmd.Process.Pid, otherVersion)
	}
	if seen := f.Stats(); seen.Commands != hosts {
		t.Errorf("%d commands on %d hosts", seen.Commands, hosts)
	}
	wantNoOverlap(t, f)
}

func jobsInHand(n jobs.Node) (sum int) {
	for _, c := range n.Children {
		if c.Job != "" {
			sum += max(len(c.Jobs), 1)
		}
	}
	return sum
}

// otherBinary makes a binary of the same program with another version. The returned function puts
// it at the path of muster.
func (h *house) otherBinary() (replace func()) {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	text, err := os.ReadFile(self)
	if err != nil {
		h.t.Fatal(err)
	}
	if strings.Count(string(text), firstVersion) == 0 {
		h.t.Fatalf("the version %q is not in the binary", firstVersion)
	}
	text = []byte(strings.ReplaceAll(string(text), firstVersion, otherVersion))
	if err := os.WriteFile(h.bin+".new", text, 0o755); err != nil {
		h.t.Fatal(err)
	}
	return func() {
		if err := os.Rename(h.bin+".new", h.bin); err != nil {
			h.t.Fatal(err)
		}
	}
}
