package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// Redis is restored from an older copy of its files, or loses the end of them, which has the same
// effect. Only history knows the jobs that ended since, because the hosts keep no record; the
// children know the jobs that still run. The hosts' own log shows whether a command ran twice.
func TestNothingRunsTwiceWhenRedisIsRestoredFromAnOlderCopy(t *testing.T) {
	t.Parallel()
	const hosts = 64
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newHouse(t, inventory)
	h.redis.Do(t, "CONFIG", "SET", "appendfsync", "always")
	h.config(fourByFour)
	h.master()
	id := h.submit("all", held)
	first := h.inHand(16)
	files := filepath.Join(h.redis.Dir, "appendonlydir")
	older := filepath.Join(t.TempDir(), "older")
	if err := os.CopyFS(older, os.DirFS(files)); err != nil {
		t.Fatal(err)
	}
	letGo(t, f, first...)
	h.awaitPast(id, len(first))
	h.inHand(16, first...) // these run all the time

	h.redis.Kill()
	if err := os.RemoveAll(files); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(files, os.DirFS(older)); err != nil {
		t.Fatal(err)
	}
	if err := h.redis.Start(); err != nil {
		t.Fatal(err)
	}
	h.server.await("history was asked what has ended")
	letGo(t, f)
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	ran := map[string]int{}
	for _, e := range f.Log() {
		if ran[e.Host]++; ran[e.Host] > 1 {
			t.Errorf("host %s ran %q a second time", e.Host, e.Command)
		}
	}
	if len(ran) != hosts {
		t.Errorf("%d of %d hosts ran", len(ran), hosts)
	}
	for _, j := range h.awaitPast(id, hosts) {
		if j.Outcome != jobs.Succeeded {
			t.Errorf("history says of %s: %s (%s)", j.ID, j.Outcome, j.Error)
		}
	}
	if n := h.events()["recalled"]; n == 0 {
		t.Error("history was not asked")
	}
}

// A FLUSHALL removes a freeze that somebody ordered by hand. Nothing runs on that host: neither
// before the house noticed the loss, nor after it has restored the agreements.
func TestAFreezeByHandOutlivesAFlushAll(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	h := newHouse(t, inventory)
	h.master()
	host := f.Hosts()[0].Name
	if _, code := h.muster("windows", "freeze", "outage", "--host", host, "--reason", "INC-7"); code != cli.ExitOK {
		t.Fatalf("freeze: exit %d", code)
	}
	var r api.AgreedReport
	h.awaitAgreed(&r, func() bool { return strings.Contains(r.Parts[0].Kept, "1 freezes") })
	h.redis.Do(t, "FLUSHALL")
	h.awaitAgreed(&r, func() bool { return !r.Lost.Since.IsZero() && r.Parts[0].Comes })
	if _, code := h.muster("health"); code != cli.ExitNotAll {
		t.Errorf("health: exit %d, want %d", code, cli.ExitNotAll)
	}
	// An empty list without a warning would be taken for the truth.
	for _, list := range []string{"windows ls", "schedules ls", "gate ls", "rollout ls", "rollout chains"} {
		_, _, words := h.plainly("", strings.Fields(list)...)
		if !strings.Contains(words, "Redis has lost what was agreed") {
			t.Errorf("%s does not say that Redis has lost what was agreed: %s", list, words)
		}
	}
	if _, code := h.muster("restore", "--reason", "INC-8"); code != cli.ExitUsage { // nobody answers the question
		t.Errorf("restore without an answer: exit %d, want %d", code, cli.ExitUsage)
	}
	out, code := h.muster("restore", "--reason", "INC-8", "--yes")
	if code != cli.ExitOK || !strings.Contains(out, "came back") {
		t.Fatalf("restore: exit %d, %s", code, out)
	}
	id := h.submit("all", "true")
	h.awaitTask(id, func(i jobs.TaskInfo) bool {
		h.muster("nodes", "thaw", "--reason", "nobody else is alive")
		return i.Outcomes[jobs.Succeeded] == 1
	})
	h.awaitJob(jobs.NewID(id, host), jobs.Deferred)
	for _, e := range f.Log() {
		if e.Host == host {
			t.Errorf("%s ran on a host that is frozen", e.Command)
		}
	}
}

// awaitAgreed reads the stored agreements until they are as wanted.
func (h *house) awaitAgreed(r *api.AgreedReport, as func() bool) {
	h.t.Helper()
	for late, tick := h.late(), time.Tick(commandEvery); ; {
		if h.query(r, "restore", "--dry-run"); len(r.Parts) > 0 && as() {
			return
		}
		select {
		case <-late:
			h.t.Fatalf("what is agreed stays %+v", r)
		case <-tick:
		}
	}
}

// inHand waits until the children have so many jobs in hand on hosts outside but, and returns these
// hosts.
func (h *house) inHand(n int, but ...string) (hosts []string) {
	h.t.Helper()
	h.awaitNode(func(node jobs.Node) bool {
		hosts = nil
		for _, c := range node.Children {
			for _, job := range c.Jobs {
				if !slices.Contains(but, job.Host()) {
					hosts = append(hosts, job.Host())
				}
			}
		}
		return len(hosts) == n
	})
	return hosts
}

// awaitPast waits until history knows the end of so many jobs of a task.
func (h *house) awaitPast(id jobs.TaskID, n int) []jobs.JobInfo {
	h.t.Helper()
	for late, tick := h.late(), time.Tick(commandEvery); ; {
		var page api.PastJobs
		if h.query(&page, "history", "--task", string(id), "--limit", "500"); len(page.Jobs) >= n {
			out := make([]jobs.JobInfo, len(page.Jobs))
			for i, j := range page.Jobs {
				out[i] = j.JobInfo
			}
			return out
		}
		select {
		case <-late:
			h.t.Fatalf("history has %d jobs of task %s, want %d", len(page.Jobs), id, n)
		case <-tick:
		}
	}
}
