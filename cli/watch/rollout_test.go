package watch

import (
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/apitest"
)

func TestARolloutInWords(t *testing.T) {
	t.Parallel()
	five := 5
	at := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	task := func(change func(*jobs.TaskInfo, *jobs.RolloutInfo)) jobs.TaskInfo {
		r := &jobs.RolloutInfo{Rollout: jobs.Rollout{Waves: []int{1, 19, 80, 100}, Soak: 5 * time.Minute}, Wave: 2}
		r.MaxFailed = &five
		i := jobs.TaskInfo{Task: apitest.ATask, Total: 200, State: jobs.TaskRunning, Outcomes: jobs.NewCounts(),
			Orders: jobs.Orders{Rollout: r}, Span: jobs.Span{Submitted: jobs.Time{Time: at}, Seconds: 600}}
		change(&i, r)
		return i
	}
	for _, c := range []struct {
		task        jobs.TaskInfo
		state, word string
		line        string
	}{
		{task(func(*jobs.TaskInfo, *jobs.RolloutInfo) {}), "running, wave 2/4", "wave 2 of 4",
			"wave 2 of 4, 20 of 200 hosts"},
		{task(func(_ *jobs.TaskInfo, r *jobs.RolloutInfo) { r.Over.Time = at.Add(6 * time.Minute) }),
			"running, wave 2/4", "wave 2 of 4 soaks", "the next one opens at "},
		{task(func(_ *jobs.TaskInfo, r *jobs.RolloutInfo) {
			r.Over.Time, r.Gate = at.Add(4*time.Minute), true
		}), "running, wave 2/4", "wave 2 of 4 waits for a person: muster rollout next " + apitest.ATask,
			"; it waits for a person: muster rollout next " + apitest.ATask + " --reason '…'"},
		{task(func(_ *jobs.TaskInfo, r *jobs.RolloutInfo) {
			r.Over.Time, r.Health, r.Checks = at.Add(4*time.Minute), "exec", "0000000001"
		}), "running, wave 2/4", "wave 2 of 4 is checked", "; task 0000000001 checks its hosts"},
		{task(func(_ *jobs.TaskInfo, r *jobs.RolloutInfo) {
			r.Over.Time, r.Pass = at.Add(9*time.Minute), true
		}), "running, wave 2/4", "wave 2 of 4", "hosts: over since"},
		{task(func(i *jobs.TaskInfo, _ *jobs.RolloutInfo) { i.State = jobs.TaskEnded }), "ended", "",
			"wave 2 of 4, 20 of 200 hosts"},
	} {
		if state, word := stateWords(c.task), waveWord(c.task); state != c.state || word != c.word {
			t.Errorf("%q, %q: want %q, %q", state, word, c.state, c.word)
		}
		if line := waveLine(c.task); !strings.Contains(line, c.line) {
			t.Errorf("%q lacks %q", line, c.line)
		}
	}
	rule := jobs.Rollout{Waves: []int{1, 19, 80, 100}, Soak: 90 * time.Minute, Health: "facts", Gate: true}
	rule.Breaker, rule.UnreachableOK = jobs.Breaker{Failures: 3, Within: 10 * time.Minute}, true
	want := `stops when 3 fail within 10m
4 waves of 1, 19, 80, 100 hosts; the next one opens if none failed, 1h30m later, when facts has succeeded on all hosts so far, when a person says so
a host that is not reached is no failure`
	if got := strings.Join(RuleLines(rule, 200), "\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
