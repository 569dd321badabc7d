package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// inWaves returns the hosts of the waves of a task, by the frozen order of its jobs.
func (h *house) inWaves(t jobs.TaskInfo) (waves [][]string) {
	h.t.Helper()
	list := h.jobs(t.Task)
	for _, n := range t.Rollout.Waves {
		var hosts []string
		for _, j := range list[:n] {
			hosts = append(hosts, j.Host)
		}
		waves, list = append(waves, hosts), list[n:]
	}
	return waves
}

// A rollout runs in waves over pairs of hosts, and its server is killed while it waits between two
// waves: each wave begins after the one before, by the hosts' own log, and no two hosts of a pair
// are in the same wave.
func TestWavesOfPairsSurviveAKilledServer(t *testing.T) {
	t.Parallel()
	h, f := newPairs(t, 4)
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "exec", "--on", "all", "--arg", "cmd=true", "--waves", "1,25%,100%",
		"--soak", "2s", "--max-failed", "1", "--detach"); code != 0 {
		t.Fatalf("exit %d", code)
	}
	if got := fmt.Sprint(task.Rollout.Waves); got != "[1 4 9 6]" {
		t.Errorf("waves %s, want two of no pair in one: [1 4 9 6]", got)
	}
	h.awaitTask(task.Task, func(i jobs.TaskInfo) bool { return !i.Rollout.Over.IsZero() })
	h.server.kill()
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	done := h.wait(task.Task)
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Succeeded: 2 * pairs})

	first, last := map[string]time.Time{}, map[string]time.Time{}
	for _, e := range f.Log() {
		first[e.Host], last[e.Host] = e.Start, e.End
	}
	before := time.Time{}
	for n, hosts := range h.inWaves(done) {
		groups := map[string]bool{}
		latest := before
		for _, host := range hosts {
			if groups[groupOf(host)] {
				t.Errorf("wave %d has two of %s", n+1, groupOf(host))
			}
			groups[groupOf(host)] = true
			if n > 0 && first[host].Sub(before) < 2*time.Second {
				t.Errorf("%s of wave %d began %s after the wave before", host, n+1, first[host].Sub(before))
			}
			if last[host].After(latest) {
				latest = last[host]
			}
		}
		before = latest
	}
	if n := h.events(); n["wave"] != 3 || n["wave-over"] != 3 {
		t.Errorf("events: %v", n)
	}
}

// A canary that fails keeps the others from beginning; a person decides.
func TestACanaryThatFailsStops(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 9, Personality: func(i int) fakefleet.Personality {
		if i == 0 {
			return fakefleet.Fail
		}
		return fakefleet.Normal
	}})
	h := newHouse(t, inventory)
	h.master()
	var task jobs.TaskInfo
	code := h.query(&task, "run", "exec", "--on", "all", "--arg", "cmd=true", "--canary", "2", "--wait")
	if code != cli.ExitStopped || task.Outcomes.Sum() != 2 || len(f.Log()) != 2 {
		t.Errorf("exit %d, %v: want that it stops after two hosts", code, task.Outcomes)
	}
	if want := "wave 1: 1 failed, and without --max-failed none may before the next wave"; task.Rollout.Stopped != want {
		t.Errorf("stopped: %q, want %q", task.Rollout.Stopped, want)
	}
	if _, code := h.muster("rollout", "next", string(task.Task), "--reason", "that one is old"); code != 0 {
		t.Errorf("next: exit %d", code)
	}
	wantOutcomes(t, h.wait(task.Task), map[jobs.Outcome]int{jobs.Succeeded: 8, jobs.Failed: 1})
}

// No wave is opened while another one runs, and no script can take the answer for opened.
func TestTheNextWaveIsNotOpenedEarly(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 4})
	h := newHouse(t, inventory)
	h.master()
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "exec", "--on", "all", "--arg", "cmd="+held, "--waves", "2,100%", "--gate",
		"--detach"); code != 0 {
		t.Fatalf("exit %d", code)
	}
	id := string(task.Task)
	next := []string{"rollout", "next", id, "--reason", "it looks well"}
	want := "task " + id + ": no wave was opened: wave 1 of 2 is not over yet: 0 of the 2 jobs so far have ended; " +
		"`muster rollout show " + id + "` shows when it is over\n"
	if words := h.complaint(cli.ExitNotAll, next...); !strings.HasSuffix(words, want) {
		t.Errorf("%q, want …%q", words, want)
	}
	var did jobs.Rolled
	if code := h.query(&did, next...); code != cli.ExitNotAll || !did.Already || did.Early == "" {
		t.Errorf("as JSON: exit %d, %+v", code, did)
	}
	// A new budget is an order in itself, and one that is given twice has been carried out.
	for _, want := range []string{" continues; it stops when more than 3 have failed\n",
		" needs no order to continue, and its rule is so already: it stops when more than 3 have failed: nothing to do\n"} {
		if out, code := h.muster(append(next, "--max-failed", "3")...); code != cli.ExitOK || out != "task "+id+want {
			t.Errorf("--max-failed: exit %d, %q, want …%q", code, out, want)
		}
	}
	letGo(t, f)
	h.awaitTask(task.Task, func(i jobs.TaskInfo) bool { return !i.Rollout.Over.IsZero() })
	if out, code := h.muster(next...); code != cli.ExitOK || !strings.Contains(out, "continues") {
		t.Errorf("of a wave that is over: exit %d, %q", code, out)
	}
	wantOutcomes(t, h.wait(task.Task), map[jobs.Outcome]int{jobs.Succeeded: 4})
	if out, code := h.muster(next...); code != cli.ExitOK || out != "task "+id+" has ended: nothing to do\n" {
		t.Errorf("of a task that has ended: exit %d, %q", code, out)
	}
}

// A gate waits for a person, and a health check for the hosts so far.
func TestAGateAndAHealthCheckBetweenWaves(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 6})
	h := newHouse(t, inventory)
	h.master()
	var task jobs.TaskInfo
	if code := h.query(&task, "run", "exec", "--on", "all", "--arg", "cmd=true", "--waves", "2,4,100%",
		"--health", "exec", "--health-arg", "cmd=true", "--gate", "--detach"); code != 0 {
		t.Fatalf("exit %d", code)
	}
	for wave := 1; wave < 3; wave++ {
		i := h.awaitTask(task.Task, func(i jobs.TaskInfo) bool {
			return i.Rollout.Wave == wave && i.Rollout.Checks != ""
		})
		// The rollout names the check just before it is submitted.
		check := h.awaitTask(i.Rollout.Checks, func(i jobs.TaskInfo) bool { return i.State == jobs.TaskEnded })
		if check.Outcomes[jobs.Succeeded] != 2*wave || check.Reason != fmt.Sprintf(
			"health check of task %s after wave %d", task.Task, wave) {
			t.Errorf("check of wave %d: %v, %q", wave, check.Outcomes, check.Reason)
		}
		if out, _ := h.muster("rollout", "show", string(task.Task)); !strings.Contains(out,
			fmt.Sprintf("wave %d of 3, %d of 6 hosts: over since", wave, 2*wave)) {
			t.Errorf("muster rollout show says:\n%s", out)
		}
		if out, code := h.muster("rollout", "next", string(task.Task), "--reason", "it is well"); code != 0 ||
			!strings.Contains(out, "continues") {
			t.Errorf("next: exit %d, %q", code, out)
		}
	}
	wantOutcomes(t, h.wait(task.Task), map[jobs.Outcome]int{jobs.Succeeded: 6})

	h.query(&task, "run", "exec", "--on", "all", "--arg", "cmd=true", "--canary", "1", "--health", "exec",
		"--health-arg", "cmd=exit 3", "--wait")
	if want := "wave 1: health check exec: 1 of 1 hosts did not pass, see task "; task.State != jobs.TaskStopped ||
		!strings.HasPrefix(task.Rollout.Stopped, want) {
		t.Errorf("%s: %q, want %q…", task.State, task.Rollout.Stopped, want)
	}
	if _, code := h.muster("cancel", string(task.Task)); code != 0 {
		t.Errorf("cancel: exit %d", code)
	}
	if done := h.wait(task.Task); done.Outcomes[jobs.Cancelled] != 5 {
		t.Errorf("after the cancel: %v", done.Outcomes)
	}

	words := h.complaint(cli.ExitUsage, "run", "exec", "--on", "all", "--arg", "cmd=true", "--canary", "6",
		"--waves", "3,2,0%", "--soak", "-1s", "--health", "nothing", "--max-failed", "6", "--health-arg", "x")
	if want := `--health-arg "x": want name=value`; !strings.Contains(words, want) {
		t.Errorf("it lacks %q:\n%s", want, words)
	}
	words = h.complaint(cli.ExitUsage, "run", "exec", "--on", "all", "--arg", "cmd=true", "--canary", "6",
		"--waves", "3,2,0%", "--soak", "-1s", "--health", "nothing", "--max-failed", "6")
	for _, want := range []string{"--canary: there are waves as well", "--waves: 2: want more than the wave before, 3",
		`--waves: "0%": want more than 0%`, `--soak: "-1s": want a time`, "--health: ", `--max-failed: "6" of 6 hosts`} {
		if !strings.Contains(words, want) {
			t.Errorf("it lacks %q:\n%s", want, words)
		}
	}
}
