package main

import (
	"fmt"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/jobs"
	"muster/testkit/apitest"
	"muster/testkit/sshtest"
)

// clocked makes hosts with wrong clocks, in a house with a master: late is an hour behind, early is
// a week ahead.
func clocked(t *testing.T) (*recording, map[string]sshtest.Clock) {
	t.Helper()
	r, clocks := &recording{}, map[string]sshtest.Clock{}
	inventory := "defaults: {fence: required}\nhosts:\n"
	for i, h := range []struct {
		name string
		off  time.Duration
	}{{"late", -time.Hour - 20*time.Second}, {"early", 7*24*time.Hour + time.Hour}} {
		clock := sshtest.NewClock(t, h.off)
		s := sshtest.StartSSHD(t, clock.On(sshtest.Options{Address: fmt.Sprintf("127.0.0.%d", i+2)}))
		inventory += fmt.Sprintf("  - {name: %s, address: %s, port: %d, user: %s, key: %s, "+
			"host_key: %q, customer: %[1]s}\n",
			h.name, s.Address, s.Port, s.User, s.Key, s.HostKey)
		r.homes = append(r.homes, clock.Home())
		clocks[h.name] = clock
	}
	r.house = newCellar(t, inventory)
	r.write("flash.yaml", "name: flash\nwindow: required\ntimeout: 1m\nexpect: 1s\n"+
		"steps: [{name: flash, run: date +%s}]\n")
	r.configure(map[string]any{"runbooks": []string{r.file("flash.yaml")}})
	r.server = r.start("server", "--config", r.file("muster.yaml"))
	r.server.await("server listens")
	r.master = r.house.master()
	return r, clocks
}

// A host whose clock is an hour off, or a week, is reported, and works like any other.
func TestHostsWithAWrongClock(t *testing.T) {
	t.Parallel()
	r, clocks := clocked(t)
	code, out, words := r.plainly("", "hosts", "check", "all", "--live")
	if code != cli.ExitNotAll {
		t.Errorf("check: exit %d: %s", code, words)
	}
	apitest.WantParts(t, "hosts check --live", out, "1 host: late: clock: its clock is 1h00m behind",
		"1 host: early: clock: its clock is 7d01h ahead", "have it follow NTP", "0 of 2 hosts well")

	r.muster("facts", "gather", "all")
	for host, want := range map[string]string{"late": `clock_offset +1h00m behind`,
		"early": `clock_offset +7d01h ahead`} {
		if out, _ := r.muster("facts", "show", host); !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("facts of %s: want %s in\n%s", host, want, out)
		}
	}
	var list []struct{ Name string }
	if r.query(&list, "hosts", "ls", "fact.clock_offset>1800"); len(list) != 2 {
		t.Errorf("hosts whose clock is off: %v", list)
	}

	r.jumpsUnderAKilledWorker(clocks)
	r.keepsToItsWindow()
}

// jumpsUnderAKilledWorker makes the clocks jump in the middle of a step whose worker is killed.
func (r *recording) jumpsUnderAKilledWorker(clocks map[string]sshtest.Clock) {
	r.t.Helper()
	id := r.submit("all", "echo begun >> ~/begun; "+waits+"; echo done >> ~/file; echo out")
	r.await("begun")
	for _, clock := range clocks {
		clock.Set(-26 * time.Hour)
	}
	r.signal(syscall.SIGKILL)
	r.goOn()
	r.wantAttached(id, "out\n")
	for _, clock := range clocks {
		clock.Set(-time.Hour)
	}
}

// keepsToItsWindow has one host with a window that is open, but not by its own clock, and one with
// a window that is open by its own clock only.
func (r *recording) keepsToItsWindow() {
	r.t.Helper()
	at := func(in time.Duration) string { return time.Now().Add(in).UTC().Format("2006-01-02 15:04:05") }
	r.write("windows.yaml", fmt.Sprintf(`windows:
- {name: open, customer: late, zone: UTC, dates: ["%s"], length: 20m, approval: none}
- {name: shut, customer: early, zone: UTC, dates: ["%s", "%s"], length: 20m, approval: none}
`, at(-5*time.Minute), at(-65*time.Minute), at(2*time.Hour)))
	if out, code := r.muster("windows", "apply", r.file("windows.yaml")); code != cli.ExitOK {
		r.t.Fatalf("windows apply: exit %d: %s", code, out)
	}
	var plan api.Submitted
	if code := r.query(&plan, "run", "flash", "--on", "all", "--detach"); code != cli.ExitOK {
		r.t.Fatalf("run: exit %d", code)
	}
	if j := r.awaitJob(jobs.NewID(plan.Task, "late"), jobs.Ended); j.Outcome != jobs.Succeeded {
		r.t.Errorf("in its window: %s, %s", j.Outcome, j.Error)
	}
	list := r.jobs(plan.Task)
	i := slices.IndexFunc(list, func(j jobs.JobInfo) bool { return j.Host == "early" })
	if j := list[i]; j.Attempt != 0 || j.State == jobs.Ended || time.Until(j.Next.Time) < time.Hour {
		r.t.Errorf("its window is open by its own clock only: %s, attempt %d, next %s", j.State, j.Attempt, j.Next)
	}
	if out, code := r.muster("cancel", string(plan.Task), "--reason", "seen"); code != 0 {
		r.t.Errorf("cancel: exit %d: %s", code, out)
	}
}
