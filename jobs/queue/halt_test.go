package queue_test

import (
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/redistest"
)

// A lift reaches a zone late, after another operator has lifted the halt and ordered the next one.
// It does not end that next halt.
func TestALateLiftDoesNotEndALaterHalt(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, late, ctx := open(t, w, "1"), open(t, w, ""), t.Context()
		submit(t, q, spec(), 2)
		if _, err := q.Halt(ctx, "alice: the first"); err != nil {
			t.Fatal(err)
		}
		late.BeforeScript("lift", func(n int) error {
			if n > 1 {
				return nil
			}
			if _, err := q.Lift(ctx, "bob: over"); err != nil {
				return err
			}
			_, err := q.Halt(ctx, "bob: the second")
			return err
		})
		p, err := late.Lift(ctx, "alice: over")
		if err != nil || p.Already || !p.Overtaken || !p.Paused || p.Note != "bob: the second" {
			t.Errorf("the late lift says %+v, %v: want that the second halt stands", p, err)
		}
		if err := q.Tend(ctx, zone); err != nil {
			t.Fatal(err)
		}
		if p, err := q.Pauses(ctx); err != nil || p.Halted != "bob: the second" {
			t.Errorf("after the late lift: %+v, %v", p, err)
		}
		if r := step(t, q, "1", 1); r.Status != jobs.StatusHalted {
			t.Fatalf("the late lift ended the second halt: %+v", r)
		}
		if p, err := q.Lift(ctx, "bob: over, too"); err != nil || p.Already {
			t.Errorf("the lift of the second halt: %+v, %v", p, err)
		}
		one(t, step(t, q, "1", 1))
	})
}

// A late lift under a halt that continues costs no job its time: the end of that halt postpones the
// expiry by all of its time.
func TestALateLiftLeavesTheExpiryToTheLastOne(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	at := time.Now()
	pass := func(d time.Duration) {
		at = at.Add(d)
		m.SetTime(at)
		m.FastForward(d)
	}
	pass(0)
	q, late := open(t, world{cfg: cfg}, "1"), open(t, world{cfg: cfg}, "")
	s := spec()
	s.Expire = time.Hour
	task, hosts := newTask(s, 1)
	hosts["aa"], task.Total = []string{"aa1"}, 2 // the zone that is asked first
	if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
		t.Fatal(err)
	}
	order := func(_ jobs.Switched, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	order(q.Halt(t.Context(), "alice"))
	late.BeforeScript("lift", func(n int) error {
		if n > 1 {
			return nil
		}
		order(q.Lift(t.Context(), "bob"))
		pass(time.Second)
		order(q.Halt(t.Context(), "bob"))
		pass(30 * time.Minute)
		return nil
	})
	order(late.Lift(t.Context(), "alice"))
	pass(2 * time.Hour)
	order(q.Lift(t.Context(), "bob"))
	pass(50 * time.Minute)
	if err := q.Tend(t.Context(), zone); err != nil {
		t.Fatal(err)
	}
	wantState(t, q, jobs.NewID(task.ID, "fw0000"), jobs.Queued, "")
}

// During a halt, and in a paused zone, nothing is handed out, yet the jobs of a node that is gone
// become lost; what their workers may still do counts as running.
func TestWhereNothingStartsLostJobsAreSeen(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		if w.pass == nil {
			return
		}
		q, ctx := open(t, w, "1"), t.Context()
		turn := map[bool][2]func() (jobs.Switched, error){
			true: {func() (jobs.Switched, error) { return q.Halt(ctx, "alice") },
				func() (jobs.Switched, error) { return q.Lift(ctx, "alice") }},
			false: {func() (jobs.Switched, error) { return q.PauseZone(ctx, zone, "alice") },
				func() (jobs.Switched, error) { return q.ResumeZone(ctx, zone, "alice") }},
		}
		for _, halt := range []bool{true, false} {
			submit(t, q, spec(), 251)
			var dead []jobs.Grant
			for len(dead) < 250 {
				dead = append(dead, step(t, q, "1", 250-len(dead)).Jobs...)
			}
			w.pass(30 * time.Second)
			alive := one(t, step(t, q, "2", 1))
			w.pass(40 * time.Second) // the locks of the others have ended
			if _, err := turn[halt][0](); err != nil {
				t.Fatal(err)
			}
			if err := q.Tend(ctx, zone); err != nil {
				t.Fatal(err)
			}
			for _, g := range dead {
				wantState(t, q, g.Job, jobs.Lost, "")
			}
			wantState(t, q, alive.Job, jobs.Running, "")
			if r := step(t, q, "3", 1); r.Status != jobs.StatusHalted || len(r.Jobs) > 0 {
				t.Errorf("handed out %+v", r)
			}
			step(t, q, "2", 0, ended(alive, jobs.Succeeded))
			wantState(t, q, alive.Job, jobs.Ended, jobs.Succeeded)
			if _, err := turn[halt][1](); err != nil {
				t.Fatal(err)
			}
			if g := one(t, step(t, q, "3", 1)); g.Mode != jobs.ModeLost {
				t.Errorf("handed out %+v, want it as lost", g)
			}
			if _, err := q.Cancel(ctx, alive.Job.Task(), "alice"); err != nil {
				t.Fatal(err)
			}
			w.pass(10 * time.Minute)
			for r := step(t, q, "4", 200); len(r.Jobs) > 0; {
				var results []jobs.Result
				for _, g := range r.Jobs {
					results = append(results, ended(g, jobs.Unknown))
				}
				r = step(t, q, "4", 200, results...)
			}
		}
	})
}
