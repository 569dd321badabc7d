package queue_test

import (
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

func TestCancelStopsAndPauseLaysAside(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 700)
		g := one(t, step(t, q, "1", 1))
		p, err := q.Pause(t.Context(), id, "alice: lunch")
		if err != nil || p.Moved != 699 || p.Already || !p.Paused || p.Running != 1 {
			t.Fatalf("pause: %+v, %v", p, err)
		}
		if p, err := q.Pause(t.Context(), id, "bob"); err != nil || !p.Already || p.Note != "alice: lunch" {
			t.Errorf("pause again: %+v, %v", p, err)
		}
		task, err := q.Task(t.Context(), id)
		if err != nil || task.State != jobs.TaskPaused || task.Paused != "alice: lunch" {
			t.Errorf("task: %+v, %v", task, err)
		}
		if got := drain(t, q, "2", 8); len(got) != 0 {
			t.Fatalf("handed out %v of a paused task", got)
		}
		if p, err = q.Resume(t.Context(), id, "alice: back"); err != nil || p.Moved != 699 || p.Already {
			t.Fatalf("resume: %+v, %v", p, err)
		}
		if p, err = q.Resume(t.Context(), id, "alice: back"); err != nil || !p.Already {
			t.Errorf("resume again: %+v, %v", p, err)
		}
		if c, err := q.CancelJobs(t.Context(), []jobs.ID{g.Job, jobs.NewID(id, "fw0500")}, "bob"); err != nil ||
			c.Ended != 1 || c.Running != 1 {
			t.Fatalf("cancel of jobs: %+v, %v", c, err)
		}
		stops, err := q.Stops(t.Context(), zone, []jobs.ID{g.Job, jobs.NewID(id, "fw0501")})
		if err != nil || len(stops) != 1 || stops[g.Job] != "bob" {
			t.Errorf("stops: %v, %v", stops, err)
		}
		// Its worker would retry it later: it ends at once instead.
		step(t, q, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindRetry, Delay: time.Hour})
		wantState(t, q, g.Job, jobs.Ended, jobs.Cancelled)
		if _, err := q.CancelJobs(t.Context(), []jobs.ID{jobs.NewID(id, "nobody")}, "bob"); err == nil {
			t.Error("a job that is not there can be cancelled")
		}
		if got := drain(t, q, "2", 8); len(got) != 698 {
			t.Errorf("handed out %d after the pause, want 698", len(got))
		}
	})
}

// A pause of a task that is over says so, and not that the task is paused.
func TestATaskThatHasEndedIsNotPaused(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 2)
		if _, err := q.Cancel(t.Context(), id, "bob"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			p, err := q.Pause(t.Context(), id, "alice: lunch")
			if err != nil || !p.Ended || p.Paused || !p.Already {
				t.Errorf("pause: %+v, %v", p, err)
			}
		}
		if p, err := q.Resume(t.Context(), id, "alice: back"); err != nil || !p.Ended || p.Paused {
			t.Errorf("resume: %+v, %v", p, err)
		}
		// The end of the pause stays stored: otherwise a copy of the orders would call the pause lost.
		for name, text := range w.raw(t).HGetAll(t.Context(), "muster:{hub}:pauses").Val() {
			if !strings.Contains(text, " off ") {
				t.Errorf("the order %s stands: %s", name, text)
			}
		}
	})
}

func TestAPausedCustomer(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 8, -1)
		s := spec()
		s.Inventory = "v-1"
		id := submit(t, q, s, 8) // alternately acme and beta
		if p, err := q.PauseCustomer(t.Context(), "acme", "alice: they called"); err != nil || p.Already {
			t.Fatalf("pause: %+v, %v", p, err)
		}
		if p, err := q.PauseCustomer(t.Context(), "acme", "bob"); err != nil || !p.Already ||
			p.Note != "alice: they called" {
			t.Errorf("pause again: %+v, %v", p, err)
		}
		got := drain(t, q, "1", 8)
		for _, g := range got {
			if strings.HasSuffix(g.Job.Host(), "0") || strings.HasSuffix(g.Job.Host(), "2") {
				t.Errorf("handed out %s of the paused customer", g.Job)
			}
		}
		if len(got) != 4 {
			t.Errorf("handed out %d, want the 4 of the other customer", len(got))
		}
		pauses, err := q.Pauses(t.Context())
		if err != nil || pauses.Customers["acme"] != "alice: they called" {
			t.Errorf("pauses: %+v, %v", pauses, err)
		}
		wantState(t, q, jobs.NewID(id, "fw0000"), jobs.Paused, "")
		// A task that is paused itself stays paused.
		other := submit(t, q, s, 8)
		drain(t, q, "2", 8)
		if _, err := q.Pause(t.Context(), other, "bob"); err != nil {
			t.Fatal(err)
		}
		p, err := q.ResumeCustomer(t.Context(), "acme", "alice")
		if err != nil || p.Already || p.Moved < 4 {
			t.Fatalf("resume: %+v, %v", p, err)
		}
		for _, g := range drain(t, q, "3", 8) {
			if g.Job.Task() == other {
				t.Errorf("handed out %s of a task that is paused itself", g.Job)
			}
		}
		wantState(t, q, jobs.NewID(id, "fw0000"), jobs.Running, "")
	})
}

func TestHaltAndLift(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 2)
		g := one(t, step(t, q, "1", 1))
		if p, err := q.Halt(t.Context(), "alice: fire"); err != nil || p.Already || len(p.Missing) != 0 {
			t.Fatalf("halt: %+v, %v", p, err)
		}
		if p, err := q.Halt(t.Context(), "bob"); err != nil || !p.Already || p.Note != "alice: fire" {
			t.Errorf("halt again: %+v, %v", p, err)
		}
		if r := step(t, q, "2", 1); r.Status != jobs.StatusHalted || len(r.Jobs) > 0 {
			t.Fatalf("a take while halted: %+v", r)
		}
		v, err := q.Checkpoint(t.Context(), zone, jobs.Checkpoint{Job: g.Job, Token: g.Token, Step: 1})
		if err != nil || v != jobs.Stop {
			t.Errorf("a further step while halted: %s, %v", v, err)
		}
		// A zone that comes later is paused too, as soon as it is tended.
		if err := q.Tend(t.Context(), "late"); err != nil {
			t.Fatal(err)
		}
		if r, err := q.Step(t.Context(), "late", jobs.Step{Node: "n1", Slot: "1", Request: "x", Want: 1}); err != nil ||
			r.Status != jobs.StatusHalted {
			t.Errorf("a later zone: %+v, %v", r, err)
		}
		if p, err := q.Lift(t.Context(), "alice: out"); err != nil || p.Already {
			t.Fatalf("lift: %+v, %v", p, err)
		}
		if err := q.Tend(t.Context(), "late"); err != nil {
			t.Fatal(err)
		}
		if r, err := q.Step(t.Context(), "late", jobs.Step{Node: "n1", Slot: "1", Request: "y", Want: 1}); err != nil ||
			r.Status != jobs.StatusNext {
			t.Errorf("a later zone after the halt: %+v, %v", r, err)
		}
		one(t, step(t, q, "2", 1))
		if p, err := q.Lift(t.Context(), "bob"); err != nil || !p.Already {
			t.Errorf("lift again: %+v, %v", p, err)
		}
	})
}

// timed returns a queue on the embedded Redis, whose clock the test moves; the scripts are the
// same.
func timed(t *testing.T) (q *queuetest.Queue, now *time.Time, pass func(time.Duration)) {
	m, cfg := redistest.StartMini(t)
	at := time.Now()
	pass = func(d time.Duration) {
		at = at.Add(d)
		m.SetTime(at)
		m.FastForward(d)
	}
	pass(0)
	return open(t, world{cfg, pass}, "1"), &at, pass
}

// A job that was deferred expires later by the time of a pause, as all others do.
func TestAPauseCostsADeferredJobNoTime(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"zone", "task", "customer"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q, now, pass := timed(t)
			publish(t, q, 1, -1)
			s := spec()
			s.Expire, s.Inventory = time.Hour, "v-1"
			id := submit(t, q, s, 1)
			g := one(t, step(t, q, "1", 1))
			step(t, q, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindDefer,
				Until: jobs.MicrosOf(now.Add(2 * time.Hour))}) // so it expires in three hours
			turn := map[string][2]func() (jobs.Switched, error){
				"zone": {func() (jobs.Switched, error) { return q.PauseZone(t.Context(), zone, "a") },
					func() (jobs.Switched, error) { return q.ResumeZone(t.Context(), zone, "a") }},
				"task": {func() (jobs.Switched, error) { return q.Pause(t.Context(), id, "a") },
					func() (jobs.Switched, error) { return q.Resume(t.Context(), id, "a") }},
				"customer": {func() (jobs.Switched, error) { return q.PauseCustomer(t.Context(), "acme", "a") },
					func() (jobs.Switched, error) { return q.ResumeCustomer(t.Context(), "acme", "a") }},
			}[what]
			tend := func() {
				if err := q.Tend(t.Context(), zone); err != nil {
					t.Fatal(err)
				}
			}
			if p, err := turn[0](); err != nil || p.Already {
				t.Fatalf("pause: %+v, %v", p, err)
			}
			tend()
			pass(4 * time.Hour)
			tend()
			if p, err := turn[1](); err != nil || p.Already {
				t.Fatalf("resume: %+v, %v", p, err)
			}
			tend()
			pass(170 * time.Minute)
			tend()
			if j := info(t, q, g.Job); j.State == jobs.Ended {
				t.Fatalf("it expired ten minutes before its time: %+v", j)
			}
			pass(20 * time.Minute)
			tend()
			wantState(t, q, g.Job, jobs.Ended, jobs.Expired)
		})
	}
}

func TestAPausedZoneDoesNotExpireJobs(t *testing.T) {
	t.Parallel()
	q, _, pass := timed(t)
	s := spec()
	s.Expire = time.Hour
	id := submit(t, q, s, 2)
	if _, err := q.PauseZone(t.Context(), zone, "alice"); err != nil {
		t.Fatal(err)
	}
	pass(2 * time.Hour)
	if err := q.Tend(t.Context(), zone); err != nil {
		t.Fatal(err)
	}
	wantState(t, q, jobs.NewID(id, "fw0000"), jobs.Queued, "")
	if p, err := q.ResumeZone(t.Context(), zone, "alice"); err != nil || p.Already {
		t.Fatalf("resume: %+v, %v", p, err)
	}
	one(t, step(t, q, "1", 1))
	pass(61 * time.Minute)
	if err := q.Tend(t.Context(), zone); err != nil {
		t.Fatal(err)
	}
	wantState(t, q, jobs.NewID(id, "fw0001"), jobs.Ended, jobs.Expired)
}

// The same holds for a job whose task is older than the listed ones.
func TestAPausedZoneDoesNotExpireJobsOfOldTasks(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		if w.pass == nil {
			return
		}
		q, s := open(t, w, "1"), spec()
		s.Expire = time.Hour
		id := submit(t, q, s, 1)
		if err := w.raw(t).ZRem(t.Context(), "muster:{hub}:tasks", string(id)).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := q.PauseZone(t.Context(), zone, "alice"); err != nil {
			t.Fatal(err)
		}
		w.pass(2 * time.Hour)
		if _, err := q.ResumeZone(t.Context(), zone, "alice"); err != nil {
			t.Fatal(err)
		}
		one(t, step(t, q, "1", 1))
	})
}

func TestANewerTaskSupersedes(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		s := spec()
		s.Supersedes = "ruleset"
		older := submit(t, q, s, 6)
		g := one(t, step(t, q, "1", 1))
		s.Created += 1000
		task, hosts := newTask(s, 4)
		if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
			t.Fatal(err)
		}
		wantState(t, q, g.Job, jobs.Running, "")
		for _, host := range []string{"fw0001", "fw0003"} {
			j := wantState(t, q, jobs.NewID(older, host), jobs.Ended, jobs.Superseded)
			if !strings.Contains(j.Error, string(task.ID)) {
				t.Errorf("error: %s", j.Error)
			}
		}
		wantState(t, q, jobs.NewID(older, "fw0005"), jobs.Queued, "")
		wantState(t, q, jobs.NewID(task.ID, "fw0001"), jobs.Queued, "")
		// The same submit again changes nothing.
		if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
			t.Fatal(err)
		}
		old, err := q.Task(t.Context(), older)
		if err != nil || old.Outcomes[jobs.Superseded] != 3 {
			t.Errorf("older task: %+v, %v", old.Outcomes, err)
		}
	})
}
