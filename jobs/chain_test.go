package jobs_test

import (
	"strings"
	"testing"
	"time"

	"muster/jobs"
)

// task returns a task of so many hosts, of which these outcomes are known.
func task(state jobs.TaskState, total int, outcomes jobs.Counts) *jobs.TaskInfo {
	return &jobs.TaskInfo{State: state, Total: total, Outcomes: outcomes}
}

func TestWhatIsNextInAChain(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	const o, r, q = jobs.TaskEnded, jobs.TaskRunning, jobs.TaskQueued
	good := func(n int) jobs.Counts { return jobs.Counts{jobs.Succeeded: n} }
	staged := task(o, 5, good(5))
	two := task(r, 5, jobs.Counts{jobs.Failed: 1, jobs.Unknown: 1})
	stopped := *two
	stopped.Cancelled = "cancelled by al"
	var bare, plain jobs.Chain
	for _, c := range []*jobs.Chain{&bare, &plain} {
		c.Hosts, c.Do.Task = []string{"a", "b", "c", "d", "e"}, "do"
		c.MaxFailed = 1
	}
	full := bare
	full.Stage, full.Undo, full.RollBack = &jobs.Link{Task: "st"}, &jobs.Link{Task: "un"}, true
	timed, late, lenient, asked := full, full, full, full
	timed.At, late.At = jobs.MicrosOf(noon.Add(time.Hour)), jobs.MicrosOf(noon.Add(-time.Hour))
	lenient.UnreachableOK, asked.RollBack = true, false
	undo := jobs.ChainOrders{Undo: "taken back by al"}
	next := jobs.ChainOrders{Next: "let go on by al", Missed: 2, Begun: true}
	for _, c := range []struct {
		name  string
		chain jobs.Chain
		seen  jobs.ChainSeen
		want  string
	}{
		{"nothing is there", full, jobs.ChainSeen{}, "staging stage"},
		{"nothing is to be prepared", plain, jobs.ChainSeen{}, "staging activate"},
		{"it is prepared", full, jobs.ChainSeen{Stage: task(r, 5, good(4))}, "staging wait"},
		{"it was prepared", full, jobs.ChainSeen{Stage: staged}, "staging activate"},
		{"it was on all but one", full, jobs.ChainSeen{Stage: task(o, 5, good(4))}, "staging activate"},
		{"on too few", full, jobs.ChainSeen{Stage: task(o, 5, good(3))},
			"stopped finish staging failed on 2 of 5 hosts, and 1 may"},
		{"on too few, which are not reached", lenient, jobs.ChainSeen{Stage: task(o, 5,
			jobs.Counts{jobs.Succeeded: 3, jobs.Unreachable: 2})}, "staging activate"},
		{"on too few, and a person says next", full, jobs.ChainSeen{Stage: task(o, 5, good(3)),
			ChainOrders: jobs.ChainOrders{Next: "x"}}, "staging activate"},
		{"on none, and a person says next", full, jobs.ChainSeen{Stage: task(o, 5, good(0)),
			ChainOrders: jobs.ChainOrders{Next: "x"}}, "stopped finish staging succeeded on none of 5"},
		{"the moment has passed", late, jobs.ChainSeen{Stage: staged}, "stopped finish staging was over later than"},
		{"its end was forgotten", full, jobs.ChainSeen{Stage: task(o, 0, nil)}, "stopped finish what became of staging"},
		{"a person takes back what was not begun", full, jobs.ChainSeen{Stage: staged, ChainOrders: undo},
			"ended finish taken back by al; nothing was activated"},
		{"who decided it died before the submit", full, jobs.ChainSeen{Stage: task(o, 0, nil),
			ChainOrders: jobs.ChainOrders{Begun: true}}, "staging activate"},
		{"nobody can go on", full, jobs.ChainSeen{Do: two, ChainOrders: jobs.ChainOrders{Broken: "why"}},
			"stopped finish why"},

		{"it waits for its moment", timed, jobs.ChainSeen{Do: task(q, 5, nil)}, "staged wait"},
		{"it runs", full, jobs.ChainSeen{Do: task(r, 5, jobs.Counts{jobs.Failed: 1})}, "activating wait"},
		{"too many failed", full, jobs.ChainSeen{Do: two}, "undoing undo 2 of 5 hosts failed, and 1 may"},
		{"with those that were not prepared", full, jobs.ChainSeen{Do: task(r, 4, jobs.Counts{jobs.Timeout: 1}),
			ChainOrders: jobs.ChainOrders{Missed: 1, Begun: true}}, "undoing undo 2 of 5 hosts failed, and 1 may"},
		{"those were accepted", full, jobs.ChainSeen{Do: task(r, 3, jobs.Counts{jobs.Failed: 1}), ChainOrders: next},
			"activating wait"},
		{"too many, and it is not to be taken back", asked, jobs.ChainSeen{Do: two},
			"activating halt 2 of 5 hosts failed, and 1 may"},
		{"which was done", asked, jobs.ChainSeen{Do: &stopped}, "activating wait 2 of 5 hosts failed, and 1 may"},
		{"a person asks for it", asked, jobs.ChainSeen{Do: &stopped, ChainOrders: undo}, "undoing undo taken back by al"},
		{"nothing can take it back", bare, jobs.ChainSeen{Do: two}, "activating halt 2 of 5 hosts failed, and 1 may"},
		{"it is taken back", full, jobs.ChainSeen{Do: two, Undo: task(r, 2, nil)},
			"undoing wait 2 of 5 hosts failed, and 1 may"},
		{"it was taken back", full, jobs.ChainSeen{Do: two, Undo: task(o, 2, good(1))},
			"ended finish 2 of 5 hosts failed, and 1 may"},
		{"it was done", full, jobs.ChainSeen{Do: task(o, 5, good(5))}, "ended finish"},
		{"it was forgotten", full, jobs.ChainSeen{Do: task(o, 0, nil)}, "stopped finish what became of task do"},
	} {
		c.seen.Now = noon
		state, move, why := c.chain.Next(c.seen)
		got := strings.TrimSpace(string(state) + " " + string(move) + " " + why)
		if got != c.want && (why == "" || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// It is never taken for better than known.
func TestWhatBecameOfAHostOfAChain(t *testing.T) {
	t.Parallel()
	at := jobs.Time{Time: time.Unix(1, 0)}
	job := func(o jobs.Outcome) *jobs.JobInfo {
		return &jobs.JobInfo{State: jobs.Ended, Outcome: o, Started: at}
	}
	never := &jobs.JobInfo{State: jobs.Ended, Outcome: jobs.Cancelled}
	running := &jobs.JobInfo{State: jobs.Running, Started: at}
	for _, c := range []struct {
		do, undo *jobs.JobInfo
		want     jobs.Fate
	}{
		{nil, nil, jobs.FateUntouched},
		{never, nil, jobs.FateUntouched},
		{&jobs.JobInfo{State: jobs.Queued}, nil, jobs.FateUntouched},
		{running, nil, jobs.FateOpen},
		{job(jobs.Succeeded), running, jobs.FateOpen},
		{job(jobs.Succeeded), nil, jobs.FateChanged},
		{job(jobs.RolledBack), nil, jobs.FateBack},
		{job(jobs.Failed), nil, jobs.FateFailed},
		{job(jobs.Unknown), nil, jobs.FateUnknown},
		{job(jobs.Unreachable), nil, jobs.FateUnknown},
		{job(jobs.Timeout), nil, jobs.FateUnknown},
		{job(jobs.Cancelled), nil, jobs.FateUnknown},
		{job(jobs.Succeeded), job(jobs.Succeeded), jobs.FateBack},
		{job(jobs.Unknown), job(jobs.Succeeded), jobs.FateBack},
		{job(jobs.Succeeded), job(jobs.Failed), jobs.FateFailed},
		{job(jobs.Unknown), job(jobs.Failed), jobs.FateUnknown},
		{job(jobs.Succeeded), job(jobs.RolledBack), jobs.FateChanged},
		{job(jobs.Succeeded), job(jobs.Unreachable), jobs.FateUnknown},
		{job(jobs.Succeeded), job(jobs.Unknown), jobs.FateUnknown},
		{job(jobs.Succeeded), job(jobs.Cancelled), jobs.FateUnknown},
		{job(jobs.Succeeded), never, jobs.FateChanged},
		{job(jobs.RolledBack), job(jobs.Failed), jobs.FateBack},
		{job(jobs.RolledBack), job(jobs.Unknown), jobs.FateBack},
	} {
		if got := jobs.FateOf(c.do, c.undo); got != c.want {
			t.Errorf("%+v and then %+v: %s, want %s", c.do, c.undo, got, c.want)
		}
	}
}
