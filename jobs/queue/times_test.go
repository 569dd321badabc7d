package queue_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"muster/jobs"
)

// near makes instants equal that lie a call apart: the slow part here is the test.
var near = []cmp.Option{cmpopts.EquateApprox(0, 2),
	cmpopts.IgnoreMapEntries(func(_ jobs.Use, seconds float64) bool { return seconds < 2 })}

func wantTimes(t *testing.T, j jobs.JobInfo, want jobs.Times) {
	t.Helper()
	if d := cmp.Diff(want, j.Times, near...); d != "" {
		t.Errorf("times of the %s job (-want +got):\n%s", j.State, d)
	}
}

// The use of a job's time is known at any moment: from the reports of workers and, while the job
// waits or ends without one, from the reason of its wait.
func TestWhatTheTimeOfAJobWentTo(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, pass := open(t, w, "1"), w.pass
		if pass == nil {
			pass = func(time.Duration) {} // time passes by itself, and nothing waits for it
		}
		s := func(seconds float64) float64 {
			if w.pass == nil {
				return 0
			}
			return seconds
		}
		task := submit(t, q, spec(), 2)
		id, other := jobs.NewID(task, "fw0000"), jobs.NewID(task, "fw0001")
		pass(20 * time.Second)
		wantTimes(t, info(t, q, id), jobs.Times{jobs.Queueing: s(20)})
		g := one(t, step(t, q, "1", 1))
		pass(10 * time.Second) // nobody has reported the use of it yet
		wantTimes(t, info(t, q, id), jobs.Times{jobs.Queueing: s(20)})

		l := jobs.Ledger{For: jobs.InWindow, Until: jobs.Micros(g.Token).Add(10 * time.Second)}
		l.Add(jobs.Queueing, 20*time.Second)
		l.Add(jobs.Connecting, 3*time.Second)
		if w.pass == nil {
			l.Until = jobs.Micros(g.Token)
		}
		step(t, q, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindDefer,
			Until: jobs.MicrosOf(time.Now().Add(time.Hour)), Error: "freeze: the year's end",
			Said: jobs.Said{Spent: l.String()}})
		pass(30 * time.Second)
		wantTimes(t, wantState(t, q, id, jobs.Deferred, ""),
			jobs.Times{jobs.Queueing: 20, jobs.Connecting: 3, jobs.InWindow: s(30)})

		// The job ends without a worker.
		if _, err := q.CancelJobs(t.Context(), []jobs.ID{id}, "bob: no"); err != nil {
			t.Fatal(err)
		}
		pass(30 * time.Second)
		wantTimes(t, wantState(t, q, id, jobs.Ended, jobs.Cancelled),
			jobs.Times{jobs.Queueing: 20, jobs.Connecting: 3, jobs.InWindow: s(30)})

		// The other job ends, and its worker reports.
		g = one(t, step(t, q, "1", 1))
		r := ended(g, jobs.Succeeded)
		r.Spent = "q90000000c4000000r17000000"
		step(t, q, "1", 0, r)
		wantTimes(t, wantState(t, q, other, jobs.Ended, jobs.Succeeded),
			jobs.Times{jobs.Queueing: 90, jobs.Connecting: 4, jobs.Acting: 17})
	})
}

// A job with a time of its own waits for its window until then.
func TestATimeOfItsOwnIsAWindow(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		task, hosts := newTask(spec(), 1)
		task.Own = map[string]jobs.Micros{"fw0000": jobs.MicrosOf(time.Now().Add(40 * time.Second))}
		if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
			t.Fatal(err)
		}
		id := jobs.NewID(task.ID, "fw0000")
		wantTimes(t, info(t, q, id), jobs.Times{})
		if w.pass == nil {
			return
		}
		w.pass(30 * time.Second)
		wantTimes(t, info(t, q, id), jobs.Times{jobs.InWindow: 30})
		w.pass(25 * time.Second)
		wantTimes(t, info(t, q, id), jobs.Times{jobs.InWindow: 40, jobs.Queueing: 15})
		g := one(t, step(t, q, "1", 1))
		l, err := jobs.ParseLedger(g.Spent)
		if err != nil || l.Spent[jobs.InWindow].Round(time.Second) != 40*time.Second {
			t.Errorf("the worker hears %q, %v", g.Spent, err)
		}
	})
}
