package main

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"muster/api"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// A change waits on its host for a file, and change 41 fails. The check of change 43 fails.
const policyRunbook = `
name: policy
arguments:
  n: {type: int, description: the number of the change}
timeout: 1m
steps:
  - {name: look, check: "echo checks {{n}}; test {{n}} != 43"}
  - {name: change, run: "echo change {{n}}; while test {{n}} = 41 -a ! -e /go; do sleep .1; done; test {{n}} != 41"}
`

// inLane submits a change of the policy in a pipeline.
func (h *house) inLane(n string, more ...string) jobs.TaskID {
	h.t.Helper()
	var task jobs.TaskInfo
	args := append([]string{"run", "policy", "--on", "all", "--arg", "n=" + n, "--lane", "rules/acme",
		"--lane-mode", "pipeline", "--detach"}, more...)
	if code := h.query(&task, args...); code != 0 {
		h.t.Fatalf("change %s: exit %d", n, code)
	}
	return task.Task
}

// aChange matches the first words of the steps of the policy, as the line for printf %b has them.
// Other commands of a job also use echo.
var aChange = regexp.MustCompile(`echo (checks|change) \\0047([0-9]+)\\0047`)

// changesOf returns what the host itself saw of the changes, in its order.
func changesOf(f *fakefleet.Fleet, host string) (seen []string) {
	for _, e := range f.Log() {
		if m := aChange.FindStringSubmatch(e.Command); m != nil && e.Host == host {
			seen = append(seen, m[1]+" "+m[2])
		}
	}
	return seen
}

// Change 42 of a policy is checked while change 41 runs. That one fails on its canary, so its other
// hosts never see it, and change 42 is checked again without it, and begins. The hosts' own log
// says so.
func TestThePipelineGoesOnWithoutWhatFailed(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the duty of lanes looks once a second")
	}
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 3})
	h := newCellar(t, inventory)
	h.write("policy.yaml", policyRunbook)
	h.configure(map[string]any{"runbooks": []string{h.file("policy.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	first := h.inLane("41", "--waves", "1,100%", "--max-failed", "0")
	h.awaitTask(first, func(i jobs.TaskInfo) bool { return i.Running == 1 })
	second := h.inLane("42")
	third := h.inLane("43")

	var canary, other string
	for _, j := range h.jobs(first) {
		if j.State == jobs.Running {
			canary = j.Host
		} else {
			other = j.Host
		}
	}
	for until := time.Now().Add(time.Minute); !slices.Contains(changesOf(f, other), "checks 42"); {
		if time.Now().After(until) {
			t.Fatalf("change 42 is not checked while 41 runs: %s saw %v", other, changesOf(f, other))
		}
		<-time.After(20 * time.Millisecond)
	}
	if err := f.Touch("/go", canary); err != nil {
		t.Fatal(err)
	}

	if i := h.wait(second); i.Outcomes[jobs.Succeeded] != 3 {
		t.Errorf("change 42: %v", i.Outcomes)
	}
	i := h.wait(first)
	if i.Outcomes[jobs.Failed] != 1 || i.Outcomes[jobs.Cancelled] != 2 {
		t.Errorf("change 41: %v, want one host that failed and two that it never reached", i.Outcomes)
	}
	if i = h.wait(third); i.Outcomes[jobs.Cancelled] != 3 {
		t.Errorf("change 43: %v, want none that began, because its check failed", i.Outcomes)
	}
	seen := changesOf(f, other)
	if at := slices.Index(seen, "change 42"); at < 2 || slices.Contains(seen, "change 41") ||
		slices.Contains(seen, "change 43") || countOf(seen[:at], "checks 42") < 2 {
		t.Errorf("%s saw %v, want change 42 behind two checks of it, and neither 41 nor 43", other, seen)
	}
	seen = changesOf(f, canary)
	if a, b := slices.Index(seen, "change 41"), slices.Index(seen, "change 42"); a < 0 || b < a ||
		countOf(seen[a:b], "checks 42") < 1 {
		t.Errorf("the canary %s saw %v, want a check of 42 on what 41 has left", canary, seen)
	}
	var lanes []api.LaneInfo
	if h.query(&lanes, "lanes"); len(lanes) > 0 {
		t.Errorf("the lane has still %+v", lanes)
	}
}

func countOf(list []string, word string) (n int) {
	for _, one := range list {
		if one == word {
			n++
		}
	}
	return n
}
