package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// complaint runs a command that must fail, and returns its error.
func (h *house) complaint(code int, args ...string) string {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), h.bin, args...)
	cmd.Env = append(os.Environ(), "MUSTER_URL="+h.url)
	var words strings.Builder
	cmd.Stderr = &words
	cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		h.t.Errorf("muster %s: exit %d, want %d: %s", strings.Join(args, " "), got, code, &words)
	}
	return words.String()
}

// failedHosts counts the hosts of a kind that have begun a command, by their own log.
func failedHosts(f *fakefleet.Fleet, kind fakefleet.Personality) int {
	kinds, seen := map[string]bool{}, map[string]bool{}
	for _, name := range f.Names(kind) {
		kinds[name] = true
	}
	for _, e := range f.Log() {
		if kinds[e.Host] {
			seen[e.Host] = true
		}
	}
	return len(seen)
}

// Every seventh of 200 hosts fails, 64 jobs run at a time, five may fail.
func TestABudgetOfFailuresIsNotOvershot(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 200, Personality: func(i int) fakefleet.Personality {
		if i%7 == 6 {
			return fakefleet.Fail
		}
		return fakefleet.Normal
	}})
	h := newHouse(t, inventory)
	h.config(map[string]any{"children": 8, "slots": 8})
	h.master()

	var done jobs.TaskInfo
	code := h.query(&done, "run", "exec", "--on", "all", "--arg", "cmd=true", "--max-failed", "5", "--wait")
	if code != cli.ExitStopped || done.State != jobs.TaskStopped || done.Outcomes[jobs.Failed] != 6 {
		t.Errorf("exit %d, %s, %v: want 4, stopped, 6 failed", code, done.State, done.Outcomes)
	}
	if n := failedHosts(f, fakefleet.Fail); n != 6 {
		t.Errorf("%d hosts that fail have begun, want 6", n)
	}
	id := string(done.Task)
	show, _ := h.muster("rollout", "show", id)
	for _, want := range []string{"stops when more than 5 of 200 failed; at most 6 at risk",
		"stopped: max-failed 5 of 200: 6 failed: fw", "muster rollout next " + id + " --max-failed N",
		"6 failed, 0 begun"} {
		if !strings.Contains(show, want) {
			t.Errorf("muster rollout show lacks %q:\n%s", want, show)
		}
	}
	for _, args := range [][]string{{"rollout", "ls"}, {"task", id}, {"queue"}} {
		if out, _ := h.muster(args...); !strings.Contains(out, "stopped") && args[0] != "queue" {
			t.Errorf("muster %v does not say that it is stopped:\n%s", args, out)
		}
	}
	if words := h.complaint(cli.ExitUsage, "rollout", "next", id, "--reason", "x"); !strings.Contains(words,
		"--max-failed: 6 of 200 have failed already: say how many may fail in all, 6 or more") {
		t.Errorf("without a new budget it says %q", words)
	}
	if out, code := h.muster("rollout", "next", id, "--max-failed", "10", "--reason", "they are old"); code != 0 ||
		!strings.Contains(out, "continues; it was stopped: max-failed 5 of 200") {
		t.Errorf("next: exit %d, %q", code, out)
	}
	if code := h.query(&done, "task", id, "--wait"); code != cli.ExitStopped || done.Outcomes[jobs.Failed] != 11 {
		t.Errorf("then exit %d, %v: want 4, 11 failed", code, done.Outcomes)
	}
	if _, code := h.muster("cancel", id, "--reason", "enough"); code != 0 {
		t.Errorf("cancel: exit %d", code)
	}
	if done = h.wait(done.Task); done.Outcomes[jobs.Cancelled] == 0 {
		t.Errorf("after the cancel: %v", done.Outcomes)
	}
	wantNoOverlap(t, f)
}

// All mistakes about a rollout are reported at once, with their flags.
func TestABadRolloutIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 20})
	h := newHouse(t, inventory)
	words := h.complaint(cli.ExitUsage, "run", "exec", "--on", "all", "--arg", "cmd=true", "--max-failed", "101%",
		"--breaker", "30/10m")
	for _, want := range []string{`--max-failed: "101%": want more than 0% and at most 100%`,
		`--breaker: "30/10m": there are only 20 hosts`} {
		if !strings.Contains(words, want) {
			t.Errorf("it lacks %q:\n%s", want, words)
		}
	}
	words = h.complaint(cli.ExitUsage, "run", "exec", "--on", "all", "--arg", "cmd=true", "--max-failed", "1",
		"--skip-closed")
	if want := "--skip-closed: a rule and waves count all hosts that are selected"; !strings.Contains(words, want) {
		t.Errorf("it lacks %q:\n%s", want, words)
	}
	var none []jobs.TaskInfo
	if h.query(&none, "tasks"); len(none) > 0 {
		t.Errorf("tasks: %+v", none)
	}
}
