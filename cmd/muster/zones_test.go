package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/jobs"
)

// inZones starts a pretended fleet of which every third host is in zone eu, and a
// house for it.
func inZones(t *testing.T, hosts int) (f *fakefleet.Fleet, h *house, abroad []string) {
	t.Helper()
	f, h, abroad = beforeZones(t, hosts)
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	return f, h, abroad
}

// beforeZones is inZones without a server.
func beforeZones(t *testing.T, hosts int) (f *fakefleet.Fleet, h *house, abroad []string) {
	t.Helper()
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	parts := strings.Split(inventory, "    zone: default\n")
	text := parts[0]
	for i, host := range f.Hosts() {
		zone := "default"
		if i%3 == 2 {
			zone = "eu"
			abroad = append(abroad, host.Name)
		}
		text += "    zone: " + zone + "\n" + parts[i+1]
	}
	return f, newCellar(t, text, "eu"), abroad
}

func TestOneNodeWorksOffTwoZones(t *testing.T) {
	t.Parallel()
	const hosts = 60
	f, h, abroad := inZones(t, hosts)
	h.config(map[string]any{"children": 3, "zones": []string{"default", "eu"}})
	h.master()
	id := h.submit("all", "sleep 0.2")
	following := h.start("events", "--task", string(id), "--server", h.url)
	done := h.wait(id)
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Succeeded: hosts})
	if !slices.Equal(done.Zones, []string{"default", "eu"}) {
		t.Errorf("the task is in zones %v", done.Zones)
	}
	// Neither zone waits for the other to be empty.
	first, last := map[bool]time.Time{}, map[bool]time.Time{}
	for _, j := range h.jobs(id) {
		eu := slices.Contains(abroad, j.Host)
		if first[eu].IsZero() || j.Started.Before(first[eu]) {
			first[eu] = j.Started.Time
		}
		if j.Finished.After(last[eu]) {
			last[eu] = j.Finished.Time
		}
	}
	for _, eu := range []bool{true, false} {
		if first[eu].After(last[!eu]) {
			t.Errorf("zone eu %v: the first job started at %s, the last of the other zone ended at %s", eu,
				first[eu], last[!eu])
		}
	}
	if code := following.end(); code != 0 {
		t.Errorf("events --task: exit %d: %s", code, following.log)
	}
	wantNoOverlap(t, f)
}

func TestTwoNodesWorkEachInItsZone(t *testing.T) {
	t.Parallel()
	const hosts = 30
	f, h, abroad := inZones(t, hosts)
	node := func(name, zone string) {
		h.zone = zone // its user of Redis has no rights in the other zone
		h.configure(map[string]any{"node": map[string]any{"name": name, "dir": h.file(name)},
			"master": map[string]any{"zones": []string{zone}, "slots": 2}})
		h.master()
	}
	node("home", "default")
	id := h.submit("all", "sleep 0.1")
	h.awaitTask(id, func(t jobs.TaskInfo) bool { return t.Outcomes.Sum() == hosts-len(abroad) })
	for _, j := range h.jobs(id) {
		state := jobs.Ended
		if slices.Contains(abroad, j.Host) {
			state = jobs.Queued
		}
		if j.State != state {
			t.Errorf("without a node in zone eu %s is %s, want %s", j.Host, j.State, state)
		}
	}
	node("abroad", "eu")
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	for _, j := range h.jobs(id) {
		want := "home/"
		if slices.Contains(abroad, j.Host) {
			want = "abroad/"
		}
		if !strings.HasPrefix(j.Node, want) || j.Attempt != 1 {
			t.Errorf("%s ran on %s in attempt %d, want node %s and the first", j.Host, j.Node, j.Attempt, want)
		}
	}
	wantNoOverlap(t, f)
}
