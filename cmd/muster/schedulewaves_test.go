package main

import (
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// upgradeBook is a runbook as people run it in waves: it disturbs its hosts, one of a pair at a
// time, and only in their windows.
const upgradeBook = `name: upgrade
disruptive: true
window: required
expect: 5s
repeatable: true
steps:
  - {name: upgrade, run: "true"}
`

// A tick fires a task in waves over pairs of hosts, in their windows; the duty opens the second
// wave after a health check, and the ticks meanwhile are left out. Another job keeps the last host,
// so that the task lasts until the schedule is paused.
func TestATickFiresInWaves(t *testing.T) {
	t.Parallel()
	h, f := newPairs(t, 4)
	h.write("upgrade.yaml", upgradeBook)
	h.configure(map[string]any{"runbooks": []string{h.file("upgrade.yaml")}})
	h.server.kill()
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.write("windows.yaml", always)
	if out, code := h.muster("windows", "apply", h.file("windows.yaml")); code != 0 {
		t.Fatalf("windows apply: exit %d: %s", code, out)
	}
	keeper := h.submit(nameOf(2*pairs-1), "sleep 600")
	h.awaitRunning(keeper)
	h.write("s.yaml", `schedules:
- name: upgrade
  cron: "@every 1s"
  zone: UTC
  runbook: upgrade
  on: all
  canary: 2
  soak: 1s
  health: exec
  health_args: {cmd: "true"}
  max_failed: 1
`)
	if out, code := h.muster("schedules", "apply", h.file("s.yaml")); code != 0 || strings.Contains(out, "no task") {
		t.Fatalf("apply: exit %d: %s", code, out)
	}
	info := h.awaitTicks("upgrade", func(t jobs.Ticking) bool { return t.Task != "" })
	first := info.Ticks.Task
	// The check may be over before anybody sees it: then the wave behind it is open.
	task := h.awaitTask(first, func(i jobs.TaskInfo) bool {
		return i.Rollout != nil && (i.Rollout.Checks != "" || i.Rollout.Wave > 1)
	})
	h.server.await("health check begun")
	if r := task.Rollout; len(r.Waves) < 2 || r.Waves[0] != 2 || *r.MaxFailed != 1 || r.Soak != time.Second ||
		task.Schedule != "upgrade" || len(f.Log()) < 3 {
		t.Errorf("its task is %+v with %+v", task, r)
	}
	if out, _ := h.muster("schedules", "show", "upgrade"); !strings.Contains(out,
		"goes out         canary 2, soak 1s, health exec, health-arg cmd=true, max-failed 1\n") {
		t.Errorf("it is shown as\n%s", out)
	}
	h.awaitTicks("upgrade", func(t jobs.Ticking) bool { return strings.Contains(t.Result, "overlap: forbid") })
	if out, code := h.muster("schedules", "pause", "upgrade", "--reason", "once is enough"); code != 0 {
		t.Fatalf("pause: exit %d: %s", code, out)
	}
	if out, code := h.muster("cancel", string(keeper), "--reason", "long enough"); code != 0 {
		t.Fatalf("cancel: exit %d: %s", code, out)
	}
	done := h.wait(first)
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Succeeded: 2 * pairs})
	for _, hosts := range h.inWaves(done) {
		groups := map[string]bool{}
		for _, host := range hosts {
			if groups[groupOf(host)] {
				t.Errorf("two of %s are in one wave", groupOf(host))
			}
			groups[groupOf(host)] = true
		}
	}
	h.query(&info, "schedules", "show", "upgrade")
	if info.Ticks.Task != first {
		t.Errorf("the ticks meanwhile: %+v", info.Ticks)
	}
}

// awaitTicks waits until the ticks of a schedule are as wanted.
func (h *house) awaitTicks(name string, as func(jobs.Ticking) bool) (info api.ScheduleInfo) {
	h.t.Helper()
	for late, look := h.late(), time.Tick(commandEvery); ; {
		if h.query(&info, "schedules", "show", name); as(info.Ticks) {
			return info
		}
		select {
		case <-late:
			h.t.Fatalf("the ticks of %s are %+v", name, info.Ticks)
		case <-look:
		}
	}
}

func TestWhatIsWrongWithTheRolloutOfAScheduleHasItsLine(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newHouse(t, inventory)
	h.write("wrong.yaml", "schedules:\n- name: x\n  cron: '@daily'\n  zone: UTC\n  runbook: exec\n"+
		"  on: all\n  waves: [1, 50%]\n  soak: later\n  breaker: 3\n  max_faild: 3\n")
	words := h.complaint(cli.ExitUsage, "schedules", "apply", h.file("wrong.yaml"))
	for _, want := range []string{":7: waves: 50%: end with 100%", `:8: soak: "later": want a time`,
		`:9: breaker: "3": want failures / time`, `:10: unknown key "max_faild"`} {
		if !strings.Contains(words, "wrong.yaml"+want) {
			t.Errorf("it lacks %q:\n%s", want, words)
		}
	}
}
