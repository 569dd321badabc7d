package main

import (
	"flag"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

var wholeShow = flag.Bool("windows.whole", false,
	"TestNobodyBeginsWhoWouldNotFit with 200 hosts, windows of two minutes and jobs of 20 s: ten minutes")

// show is a fleet that has less time in each window than it needs.
type show struct {
	hosts, slots  int
	window, gap   time.Duration // how long a window is open, and closed before the next
	expect, sleep time.Duration // duration of a job: by the runbook, and in fact
}

// dates returns the times at which the windows open; the first opens so soon.
func (s show) dates(soon time.Duration) (list []time.Time) {
	at := time.Now().Add(soon).UTC().Truncate(time.Second)
	for range 40 {
		list = append(list, at)
		at = at.Add(s.window + s.gap)
	}
	return list
}

// A disruptive task needs more time than any window has: the plan says how many hosts fit into
// which window, no job begins that would not fit, and the rest is deferred to the next window and
// done there. The hosts' own log judges.
func TestNobodyBeginsWhoWouldNotFit(t *testing.T) {
	t.Parallel()
	s := show{hosts: 50, slots: 10, window: 8 * time.Second, gap: 3 * time.Second, expect: 3 * time.Second,
		sleep: 2500 * time.Millisecond}
	soon := 15 * time.Second
	if *wholeShow {
		s = show{hosts: 200, slots: 10, window: 2 * time.Minute, gap: 30 * time.Second, expect: 20 * time.Second,
			sleep: 19500 * time.Millisecond}
	}
	f, inventory := pretend(t, fakefleet.Config{Hosts: s.hosts})
	h := newCellar(t, inventory)
	h.write("flash.yaml", fmt.Sprintf("name: flash\nwindow: required\ndisruptive: true\nrepeatable: true\n"+
		"timeout: 1m\nexpect: %s\nsteps: [{name: flash, run: sleep %.1f}]\n", s.expect, s.sleep.Seconds()))
	h.configure(map[string]any{"runbooks": []string{h.file("flash.yaml")},
		"master": map[string]any{"children": s.slots, "slots": 1}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	h.awaitNode(func(n jobs.Node) bool { return n.State == "running" })

	if _, code := h.muster("run", "flash", "--on", "all", "--dry-run"); code != cli.ExitUsage {
		t.Errorf("without a window: exit %d, want %d", code, cli.ExitUsage)
	}
	openings := s.dates(soon)
	h.write("windows.yaml", s.file(f, openings))
	if _, code := h.muster("windows", "apply", h.file("windows.yaml")); code != cli.ExitOK {
		t.Fatalf("windows apply: exit %d", code)
	}
	var plan api.Submitted
	if code := h.query(&plan, "run", "flash", "--on", "all"); code != cli.ExitOK {
		t.Fatalf("run: exit %d", code)
	}
	fit := int(s.window/s.expect) * s.slots
	for i, o := range plan.Windows.Openings {
		if left := s.hosts - i*fit; o.Count != min(fit, left) || !o.Start.Equal(openings[i]) {
			t.Errorf("opening %d is at %s for %d hosts, want %s for %d", i, o.Start, o.Count, openings[i], min(fit, left))
		}
	}
	if plan.Windows.Slots != s.slots || plan.Windows.Later != "" {
		t.Errorf("the plan is %+v", plan.Windows)
	}

	var done jobs.TaskInfo
	h.query(&done, "task", string(plan.Task), "--wait")
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Succeeded: s.hosts})
	s.judge(t, f, openings)
	for _, j := range h.jobs(plan.Task) {
		if j.Attempt != 1 || j.Tries != 0 {
			t.Errorf("%s took %d attempts and %d tries: to be deferred is no failure", j.ID, j.Attempt, j.Tries)
		}
	}
	events := h.events()
	t.Logf("%d hosts in %s, %d times deferred, %d behind the end of their window; planned %d a window",
		s.hosts, time.Since(openings[0]).Round(time.Second), events["defer"], events["overtime"], fit)
	if events["defer"] == 0 {
		t.Errorf("nothing was deferred: %v", events)
	}
	wantNoOverlap(t, f)
}

// file has a window for each customer of the fleet.
func (s show) file(f *fakefleet.Fleet, openings []time.Time) string {
	var dates []string
	for _, at := range openings {
		dates = append(dates, at.Format(`"2006-01-02 15:04:05"`))
	}
	customers := map[string]bool{}
	for _, host := range f.Hosts() {
		customers[host.Customer] = true
	}
	text := "windows:\n"
	for name := range maps.Keys(customers) {
		text += fmt.Sprintf("- {name: %s, customer: %s, zone: UTC, dates: [%s], length: %s, approval: none}\n",
			name, name, strings.Join(dates, ", "), s.window)
	}
	return text
}

// judge checks the hosts' log: each host once, begun within a window and with enough time left in
// it.
func (s show) judge(t *testing.T, f *fakefleet.Fleet, openings []time.Time) {
	t.Helper()
	ran, perWindow := map[string]int{}, map[int]int{}
	for _, e := range f.Log() {
		if !strings.Contains(e.Command, "sleep") {
			continue
		}
		ran[e.Host]++
		window := -1
		for i, at := range openings {
			// A round trip lies between the decision and the start on the host, on a machine with other
			// work.
			const roundTrip = time.Second
			if !e.Start.Before(at) && !e.Start.Add(s.sleep).After(at.Add(s.window+roundTrip)) {
				window = i
			}
		}
		if perWindow[window]++; window < 0 {
			t.Errorf("%s began at %s, outside of the windows or too late for it: %v", e.Host, e.Start.UTC(), openings[:4])
		}
	}
	if len(ran) != s.hosts {
		t.Errorf("%d hosts ran it, want %d", len(ran), s.hosts)
	}
	for host, n := range ran {
		if n != 1 {
			t.Errorf("%s ran it %d times", host, n)
		}
	}
	if len(perWindow) < 2 {
		t.Errorf("all of it was done in %d windows: %v", len(perWindow), perWindow)
	}
	t.Logf("begun per window: %v", perWindow)
}
