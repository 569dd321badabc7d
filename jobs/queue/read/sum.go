package read

import (
	"slices"
	"strconv"
	"time"

	"muster/jobs"
	"muster/jobs/queue/codec"
)

// taskPart is a task in one zone.
type taskPart struct {
	found             bool
	given             bool // up: cancelled before it was committed
	total, running    int
	committed, paused bool
	cancel, pausedBy  string
	started, ended    jobs.Micros
	outcomes          map[jobs.Outcome]int
}

func readPart(v []any) taskPart {
	text := func(i int) string {
		s, _ := v[i].(string)
		return s
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(text(i))
		return n
	}
	p := taskPart{found: v[0] != nil, total: number(0), running: number(1), committed: text(2) != "",
		paused: text(3) != "", cancel: text(4), pausedBy: text(7), outcomes: map[jobs.Outcome]int{}}
	p.started, _ = jobs.ParseMicros(text(5))
	p.ended, _ = jobs.ParseMicros(text(6))
	for i, o := range jobs.Outcomes() {
		p.outcomes[o] = number(len(taskFields) + i)
	}
	return p
}

// neverPut marks the parts of a task that will never be committed, because the task was cancelled
// during its submit: none of their jobs runs or will run, and the jobs that were not put end with
// the rest.
func neverPut(parts []taskPart) []taskPart {
	cancelled := func(p taskPart) bool { return p.cancel != "" && !p.committed }
	if !slices.ContainsFunc(parts, cancelled) {
		return parts
	}
	for i, p := range parts {
		// Jobs may run although a failover lost the record of the commit.
		if p.found && !p.committed && p.running == 0 {
			parts[i].given = true
			p.outcomes[jobs.Cancelled] += max(p.total-jobs.Counts(p.outcomes).Sum(), 0)
		}
	}
	return parts
}

// sum adds up the parts of a task in its zones. A task is committed only as a whole. It is paused
// if any open part is paused (a resume skips ended parts), and ended if all parts are.
func sum(t *jobs.TaskInfo, parts []taskPart, now time.Time) {
	committed, paused, ended, found := true, false, true, false
	given, whole := false, false // given: some part will never be committed; whole: some part was
	for _, p := range neverPut(parts) {
		found = found || p.found
		given, whole = given || p.given, whole || p.committed
		t.Total += p.total
		t.Running += p.running
		t.Outcomes.Add(p.outcomes)
		committed = committed && (p.committed || p.given || !p.found)
		ended = ended && (p.ended > 0 || p.given || !p.found)
		if p.cancel != "" {
			t.Cancelled = p.cancel
		}
		if p.paused && p.ended == 0 {
			paused, t.Paused = true, p.pausedBy
		}
		if p.started > 0 && (t.Started.IsZero() || p.started.Time().Before(t.Started.Time)) {
			t.Started = jobs.TimeOf(p.started)
		}
		if p.ended.Time().After(t.Finished.Time) {
			t.Finished = jobs.TimeOf(p.ended)
		}
	}
	t.CancelledInSubmit = given && !whole && t.Started.IsZero()
	until := now.UTC()
	switch {
	case !committed, !found && until.Sub(t.Submitted.Time) < codec.HeldKeep:
		t.State = jobs.TaskSubmitting
	case ended:
		t.State = jobs.TaskEnded
		until = t.Finished.Time
	case t.Rollout != nil && t.Rollout.Stopped != "":
		t.State = jobs.TaskStopped
	case paused:
		t.State = jobs.TaskPaused
	case t.Started.IsZero():
		t.State = jobs.TaskQueued
	default:
		t.State = jobs.TaskRunning
	}
	if t.State != jobs.TaskEnded {
		t.Finished = jobs.Time{}
	}
	t.Seconds = max(until.Sub(t.Submitted.Time).Seconds(), 0)
}
