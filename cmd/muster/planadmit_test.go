package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/queuetest"
)

// A plan and the worker that admits a job assume the same time for it: the hub's estimate, and
// without one the value of the runbook.
func TestAPlanTakesTheTimesOfAdmission(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newCellar(t, strings.Replace(inventory, "customer: ", "customer: acme # ", 1))
	h.write("upgrade.yaml", strings.Replace(upgradeBook, "expect: 5s", "expect: 17s", 1))
	h.configure(map[string]any{"runbooks": []string{h.file("upgrade.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.write("windows.yaml", always)
	if out, code := h.muster("windows", "apply", h.file("windows.yaml")); code != 0 {
		t.Fatalf("windows apply: exit %d: %s", code, out)
	}
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "upgrade", "--on", "all", "--detach"); code != 0 {
		t.Fatalf("run: exit %d", code)
	}
	var p api.Foresight
	h.query(&p, "plan", "upgrade", "--on", "all")
	if len(p.Takes) != 1 || p.Takes[0].Usual != 17 || p.Takes[0].Most != 17 || p.Takes[0].Successes != 0 {
		t.Errorf("without a success the plan takes %+v", p.Takes)
	}

	// No opening of the window is that long, though windows touch.
	q, err := queuetest.OpenLazy(h.redis.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	long := 500 * 24 * time.Hour
	if task.Ran == nil || task.Ran.Work == "" {
		t.Fatalf("the task does not say what runs: %+v", task)
	}
	field := fmt.Sprintf("%s|%s|%s", task.Ran.Work, p.Takes[0].Model, p.Takes[0].Customer)
	if err := q.SaveEstimates(t.Context(), map[string]string{field: fmt.Sprintf(`{"p50_ns":%d,"p90_ns":%d,"n":4}`,
		time.Minute, long)}); err != nil {
		t.Fatal(err)
	}
	h.master()
	why := ""
	for late, look := h.late(), time.Tick(50*time.Millisecond); why == ""; {
		select {
		case <-late:
			t.Fatalf("the worker admits it: %+v", h.jobs(task.Task))
		case <-look:
			for _, e := range h.happened() {
				if e.Event == "defer" {
					why = fmt.Sprint(e.Detail)
				}
			}
		}
	}
	if !strings.Contains(why, "the work takes "+long.String()) {
		t.Errorf("the worker says %q, want that it takes %s", why, long)
	}
	if code := h.query(&p, "plan", "upgrade", "--on", "all"); code != cli.ExitStopped || len(p.Takes) != 1 ||
		p.Takes[0].Most != long.Seconds() || p.Takes[0].Usual != 60 || p.Takes[0].Successes != 4 || p.Never != 1 {
		t.Errorf("the plan takes %+v, %d never; exit %d", p.Takes, p.Never, code)
	}
}
