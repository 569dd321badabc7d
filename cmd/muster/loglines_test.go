package main

import (
	"encoding/json"
	"strings"
	"testing"

	"muster/internal/fakefleet"
	"muster/jobs"
)

// Each line that a worker logs about a job is one JSON object, if asked, and names node, task, job
// and attempt: so a search for any of them finds the others.
func TestLinesAboutAJobNameWhereItBelongs(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newCellar(t, inventory)
	h.configure(map[string]any{"log": map[string]any{"level": "debug", "format": "json"}})
	h.start("server", "--config", h.file("muster.yaml")).await("server listens")
	m := h.master()
	job := h.jobs(h.wait(h.submit("all", "exit 3")).Task)[0]
	if job.Outcome != jobs.Failed {
		t.Fatalf("the job is %+v", job)
	}
	m.await("the attempt is over")
	seen := map[string]bool{}
	for line := range strings.Lines(m.log.String()) {
		var said map[string]any
		if err := json.Unmarshal([]byte(line), &said); err != nil {
			t.Errorf("not one JSON object: %v: %q", err, line)
			continue
		}
		if said["node"] != "node1" {
			t.Errorf("a line names no node: %s", line)
		}
		if said["job"] == nil {
			continue
		}
		if said["task"] != string(job.ID.Task()) || said["job"] != string(job.ID) || said["attempt"] != 1.0 {
			t.Errorf("a line about the job names %v, %v, %v: %s", said["task"], said["job"], said["attempt"], line)
		}
		seen[said["@message"].(string)] = true
	}
	if !seen["the attempt begins"] || !seen["the attempt is over"] {
		t.Errorf("lines about the job: %v\n%s", seen, m.log.String())
	}
}
