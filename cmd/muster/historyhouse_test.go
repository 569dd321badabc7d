package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// Everything runs as processes: hosts, a node, a server with its default history, with the user of
// Redis that etc/users.acl has for a server.
func TestAHouseKeepsItsHistory(t *testing.T) {
	t.Parallel()
	faults := []fakefleet.Personality{fakefleet.Normal, fakefleet.Normal, fakefleet.Fail, fakefleet.Refuse}
	_, inventory := pretend(t, fakefleet.Config{Hosts: len(faults),
		Personality: func(i int) fakefleet.Personality { return faults[i] }})
	h := newHouse(t, inventory)
	h.master()
	var plan api.Foresight
	if code := h.query(&plan, "plan", "exec", "--on", "all", "--arg", "cmd=uname"); code != 0 || plan.Hosts != 4 {
		t.Errorf("plan: exit %d, %+v", code, plan)
	}
	var done jobs.TaskInfo
	h.query(&done, "run", "exec", "--on", "all", "--arg", "cmd=uname", "--wait")
	var page api.PastJobs
	for late, tick := h.late(), time.Tick(commandEvery); len(page.Jobs) < len(faults); {
		select {
		case <-late:
			t.Fatalf("history has %+v", page.Jobs)
		case <-tick:
			h.query(&page, "history", "--task", string(done.Task))
		}
	}
	wantWork(t, done, page.Jobs)
	counts := jobs.NewCounts()
	for _, j := range page.Jobs {
		counts[j.Outcome]++
		if j.Runbook != "exec" || j.Finished.IsZero() {
			t.Errorf("job %+v", j)
		}
	}
	if fmt.Sprint(counts) != fmt.Sprint(done.Outcomes) || counts[jobs.Succeeded] != 2 {
		t.Errorf("history says %v, the task %v", counts, done.Outcomes)
	}
	var r api.Report
	h.query(&r, "report", string(done.Task))
	wantWork(t, done, r.Jobs)
	if len(r.Spent) < 3 {
		t.Errorf("the time of all went to %+v", r.Spent)
	}
	sum := 0
	for _, p := range r.Parts {
		sum += p.Hosts
	}
	if sum != 4 || r.Total != 4 {
		t.Errorf("report %+v", r)
	}
	var gaps api.HistoryState
	h.query(&gaps, "history", "gaps")
	if len(gaps.Gaps) != 0 || !strings.HasPrefix(gaps.Where, "sqlite "+h.file("node")) {
		t.Errorf("state %+v", gaps)
	}
	if _, err := os.Stat(h.file("node/history.db")); err != nil {
		t.Error(err)
	}
}
