package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/cli"
	"muster/cli/upgrades"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// While nodes and servers are replaced the status names what still runs the old version, down to the
// job that a child of it has in hand; afterwards it says that the old version is gone.
func TestUpgradeStatusNamesWhatHoldsUntilTheOldVersionIsGone(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newHouse(t, inventory)
	m := h.master()
	from, to := strings.TrimSpace(firstVersion), strings.TrimSpace(otherVersion)
	status := func(args ...string) (st upgrades.Status) {
		t.Helper()
		code := h.query(&st, append([]string{"upgrade", "status"}, args...)...)
		if want := map[bool]int{true: cli.ExitOK, false: cli.ExitNotAll}[st.Complete]; code != want {
			t.Errorf("exit %d, complete %t", code, st.Complete)
		}
		return st
	}
	await := func(as func(upgrades.Status) bool, args ...string) (st upgrades.Status) {
		t.Helper()
		for late, tick := h.late(), time.Tick(commandEvery); ; {
			if st = status(args...); as(st) {
				return st
			}
			select {
			case <-late:
				t.Fatalf("the status stays %+v", st)
			case <-tick:
			}
		}
	}
	complete := func(st upgrades.Status) bool { return st.Complete }
	if st := await(complete); st.To != from || len(st.Forms) != 3 || len(st.Versions) != 1 {
		t.Errorf("before: %+v", st)
	}

	id := h.submit("all", held)
	h.awaitNode(func(n jobs.Node) bool { return jobsInHand(n) == 1 })
	replace := h.otherBinary()
	replace()
	m.cmd.Process.Signal(syscall.SIGUSR2)
	m.awaitTimes("master started", 2)
	h.awaitNode(func(n jobs.Node) bool { return n.Version == to && jobsInHand(n) == 1 })
	st := status("--to", to)
	var got []string
	for _, hold := range st.Holds {
		got = append(got, hold.What+" of "+hold.Version+" with "+cli.Join(hold.Jobs))
	}
	if want := "server of " + from + " with , child of " + from + " with " + string(jobs.NewID(id, nameOf(0))); strings.
		Join(got, ", ") != want {
		t.Errorf("got %q, want %q: %+v", strings.Join(got, ", "), want, st)
	}
	letGo(t, f)
	h.wait(id)
	h.server.cmd.Process.Signal(syscall.SIGTERM)
	if code := h.server.end(); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	if st := await(complete, "--to", to); len(st.Versions) != 1 || st.Versions[0].Servers != 1 {
		t.Errorf("afterwards: %+v", st)
	}
	if st := status("--to", from); st.Complete || len(st.Holds) != 2 {
		t.Errorf("on the way back: %+v", st)
	}
}
