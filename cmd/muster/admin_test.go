package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster/api"
	"muster/audit"
	"muster/cli"
	"muster/cli/reset"
	"muster/internal/fakefleet"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue/wipe"
)

// A house is emptied only when nobody works with it and its name was given; what waited does not
// run afterwards, by the hosts' own log, and the audit log says who did it. The user of Redis has
// the rights that the help names, and no more.
func TestAResetRefusesALivingHouse(t *testing.T) {
	t.Parallel()
	const hosts, neverRuns, why = 4, "echo never", "the test house begins anew"
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newHouse(t, inventory)
	rules := []any{"ACL", "SETUSER", "muster-reset", "on", ">secret"}
	for _, rule := range strings.Fields(wipe.Rules) {
		rules = append(rules, rule)
	}
	h.redis.Do(t, rules...)
	h.redis.Do(t, "SET", "somebody else's", "1")
	m := h.master()
	wantOutcomes(t, h.wait(h.submit("all", "true")), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	if _, code := h.muster("halt", "--reason", "INC-1"); code != 0 {
		t.Fatalf("halt: exit %d", code)
	}
	h.submit("all", neverRuns)
	var r api.AgreedReport
	h.awaitAgreed(&r, func() bool { // history has the halt
		return slices.ContainsFunc(r.Parts, func(p api.AgreedCopy) bool { return p.Part == "halt" && p.Kept != "" })
	})

	keys := h.keys()
	refused := func(as reseter, exit int, words string, args ...string) {
		t.Helper()
		code, _, said := as.run(args...)
		if code != exit || !strings.Contains(said, words) {
			t.Errorf("reset %q: exit %d, want %d and %q: %s", args, code, exit, words, said)
		}
	}
	typed := reseter{h, "testhouse\n", "muster.yaml"}
	refused(typed, cli.ExitNotAll, "node node1 beats", "--reason", why)
	end(m)
	refused(typed, cli.ExitNotAll, "has duties: audit", "--reason", why)
	end(h.server)

	var report reset.Report
	code, out, said := typed.run("--dry-run", "-o", "json")
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		t.Fatalf("reset --dry-run: exit %d, %v: %s%s", code, err, out, said)
	}
	if n := report.Kinds[wipe.JobsWait]; n != hosts || report.Kinds["zone default: task:<id>"] != 2 {
		t.Errorf("reset --dry-run: %v, want 2 tasks and %d jobs that wait", report.Kinds, hosts)
	}
	h.write("other.key", serverkey.File("otherhouse", [serverkey.Size]byte{2}))
	text, err := os.ReadFile(h.file("muster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	h.write("other.yaml", strings.ReplaceAll(string(text), "server.key", "other.key"))
	refused(reseter{h, "otherhouse\n", "other.yaml"}, cli.ExitNotAll, `the installation "testhouse"`, "--reason", why)
	refused(reseter{h, "", "muster.yaml"}, cli.ExitUsage, "the answer was not testhouse", "--reason", why)
	refused(typed, cli.ExitUsage, "is not the name", "--reason", why, "--yes-delete", "testhous")
	refused(typed, cli.ExitUsage, "--reason is missing")
	if now := h.keys(); now < keys/2 { // leases and beats have ended
		t.Fatalf("%d of %d keys are left, and nothing may be deleted", now, keys)
	}

	if code, _, said := typed.run("--reason", why); code != 0 {
		t.Fatalf("reset: exit %d: %s", code, said)
	}
	if n := h.keys(); n != 1 {
		t.Errorf("%d keys are left, want that of somebody else", n)
	}
	if code, _, said := typed.run("--reason", why); code != 0 || !strings.Contains(said, "nothing to do") {
		t.Errorf("a second reset: exit %d: %s", code, said)
	}
	h.beginsAnew(f, neverRuns, why)
}

// beginsAnew starts the house again and compares what the hosts saw, and the audit log.
func (h *house) beginsAnew(f *fakefleet.Fleet, neverRuns, why string) {
	h.t.Helper()
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	var r api.AgreedReport
	h.awaitAgreed(&r, func() bool { return !r.Lost.Since.IsZero() })
	if out, code := h.muster("restore", "--nothing", "--reason", why, "--yes"); code != 0 {
		h.t.Fatalf("restore --nothing: exit %d, %s", code, out)
	}
	id := h.submit("all", "true")
	h.awaitTask(id, func(i jobs.TaskInfo) bool {
		h.muster("nodes", "thaw", "--reason", "all is new")
		return i.Outcomes[jobs.Succeeded] == len(f.Hosts())
	})
	for _, e := range f.Log() {
		if strings.Contains(e.Command, neverRuns) {
			h.t.Errorf("host %s ran a job that was deleted: %q", e.Host, e.Command)
		}
	}
	var page api.AuditPage
	h.query(&page, "audit", "ls", "--verb", "installation.reset")
	if len(page.Entries) != 1 {
		h.t.Fatalf("the audit log has %d resets, want one", len(page.Entries))
	}
	e := page.Entries[0]
	if e.Object != "installation/testhouse" || e.Said.Reason != why || e.Who == "" || e.Ended == nil ||
		e.Ended.Result != audit.Done {
		h.t.Errorf("the audit log says %+v", e)
	}
	if out, code := h.muster("audit", "verify"); code != 0 {
		h.t.Errorf("audit verify: exit %d: %s", code, out)
	}
}

// reseter calls muster admin reset as the user muster-reset of Redis.
type reseter struct {
	h             *house
	stdin, config string
}

func (r reseter) run(args ...string) (code int, out, words string) {
	r.h.t.Helper()
	args = append([]string{"admin", "reset", "--config", r.h.file(r.config)}, args...)
	c := exec.CommandContext(r.h.t.Context(), r.h.bin, args...)
	c.Env = append(os.Environ(), "MUSTER_REDIS_USERNAME=muster-reset", "MUSTER_REDIS_PASSWORD=secret")
	var stdout, stderr strings.Builder
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(r.stdin), &stdout, &stderr
	if err := c.Run(); err != nil && c.ProcessState == nil {
		r.h.t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// end ends a role in an orderly way.
func end(p *process) {
	p.t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	p.end()
}

// keys returns the number of keys in Redis.
func (h *house) keys() int {
	h.t.Helper()
	n, is := h.redis.Do(h.t, "DBSIZE").(int64)
	if !is {
		h.t.Fatal("DBSIZE is no number")
	}
	return int(n)
}
