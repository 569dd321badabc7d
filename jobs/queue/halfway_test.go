package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// A server that dies in the middle of a resume or a cancel leaves jobs of the task aside, where no
// take finds them: another server completes the order.
func TestWhatWasLeftHalfWayIsGoneOnWith(t *testing.T) {
	type do func(context.Context, *queuetest.Queue, jobs.TaskID) error
	pause := func(ctx context.Context, q *queuetest.Queue, id jobs.TaskID) error {
		_, err := q.Pause(ctx, id, "alice")
		return err
	}
	for _, c := range []struct {
		name         string
		before, then do
		calls        int // that are made before it dies
		want         jobs.State
	}{
		{"resume", pause, func(ctx context.Context, q *queuetest.Queue, id jobs.TaskID) error {
			_, err := q.Resume(ctx, id, "alice")
			return err
		}, 1, jobs.Queued},
		{"resume of a customer", func(ctx context.Context, q *queuetest.Queue, _ jobs.TaskID) error {
			_, err := q.PauseCustomer(ctx, "acme", "alice")
			if err == nil {
				_, err = q.Step(ctx, zone, jobs.Step{Node: "n1", Slot: "1", Request: "r", Want: 20})
			}
			return err
		}, func(ctx context.Context, q *queuetest.Queue, _ jobs.TaskID) error {
			_, err := q.ResumeCustomer(ctx, "acme", "alice")
			return err
		}, 0, jobs.Queued},
		{"cancel", pause, func(ctx context.Context, q *queuetest.Queue, id jobs.TaskID) error {
			_, err := q.Cancel(ctx, id, "alice")
			return err
		}, 1, jobs.Ended},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, w world) {
				q, dying, ctx := open(t, w, "1"), open(t, w, ""), t.Context()
				publish(t, q, 300, -1)
				s := spec()
				s.Inventory = "v-1"
				id := submit(t, q, s, 300)
				if err := c.before(ctx, q, id); err != nil {
					t.Fatal(err)
				}
				dying.BeforeScript(string(id), func(n int) error {
					if n > c.calls {
						return errors.New("killed")
					}
					return nil
				})
				if err := c.then(ctx, dying, id); err == nil {
					t.Fatal("it did not break off")
				}
				held := "muster:{default}:held:" + string(id)
				if w.raw(t).ZCard(ctx, held).Val() == 0 {
					t.Fatal("nothing was left half way")
				}
				if err := q.Tend(ctx, zone); err != nil {
					t.Fatal(err)
				}
				if n := w.raw(t).ZCard(ctx, held).Val(); n > 0 {
					t.Errorf("%d jobs are laid aside still", n)
				}
				wantOne(t, q, id, c.want)
			})
		})
	}
}

// A task whose order cannot be completed does not keep the tasks behind it.
func TestATaskThatCannotBeGoneOnWithKeepsNoOtherOne(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, dying, ctx := open(t, w, "1"), open(t, w, ""), t.Context()
		first, second := submit(t, q, spec(), 300), submit(t, q, spec(), 300)
		for _, id := range []jobs.TaskID{first, second} {
			if _, err := q.Pause(ctx, id, "alice"); err != nil {
				t.Fatal(err)
			}
			dying.BeforeScript(string(id), func(n int) error {
				if n > 1 {
					return errors.New("killed")
				}
				return nil
			})
		}
		if _, err := dying.Cancel(ctx, first, "alice"); err == nil {
			t.Fatal("the cancel did not break off")
		}
		if _, err := dying.Resume(ctx, second, "alice"); err == nil {
			t.Fatal("the resume did not break off")
		}
		q.BeforeScript(string(first), func(int) error { return errors.New("not this one") })
		if err := q.Tend(ctx, zone); err == nil || !strings.Contains(err.Error(), "not this one") {
			t.Errorf("said of the task that cannot be gone on with: %v", err)
		}
		held := func(id jobs.TaskID) int64 {
			return w.raw(t).ZCard(ctx, "muster:{default}:held:"+string(id)).Val()
		}
		if held(first) == 0 || held(second) > 0 {
			t.Errorf("%d and %d jobs are laid aside still, want some and none", held(first), held(second))
		}
		if err := open(t, w, "1").Tend(ctx, zone); err != nil || held(first) > 0 {
			t.Errorf("%d jobs of the cancelled task are laid aside still; %v", held(first), err)
		}
	})
}

// A zone that does not answer keeps no other zone from a cancel.
func TestACancelReachesTheZonesThatAnswer(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, ctx := open(t, w, "1"), t.Context()
		task, hosts := newTask(spec(), 2)
		hosts["aa"], task.Total = []string{"aa1"}, 3
		if err := q.Submit(ctx, task, hosts, nil); err != nil {
			t.Fatal(err)
		}
		rdb, key := redistest.Raw(t, w.cfg, "aa"), "muster:{aa}:zone"
		if err := rdb.Rename(ctx, key, key+"-away").Err(); err != nil {
			t.Fatal(err)
		}
		rdb.Set(ctx, key, "no hash", 0)
		c, err := q.Cancel(ctx, task.ID, "alice")
		if err == nil || !strings.Contains(err.Error(), "zone aa: ") || c.Ended != 2 {
			t.Errorf("cancel: %+v, %v", c, err)
		}
		if err := rdb.Rename(ctx, key+"-away", key).Err(); err != nil {
			t.Fatal(err)
		}
		wantState(t, q, jobs.NewID(task.ID, "fw0001"), jobs.Ended, jobs.Cancelled)
		if c, err = q.Cancel(ctx, task.ID, "alice"); err != nil || c.Ended != 1 || c.Already != 2 {
			t.Errorf("cancel again: %+v, %v", c, err)
		}
	})
}

// A task that was cancelled while it was submitted has ended, in all its zones: it is never
// committed, and a caller that waits for it would wait for a day.
func TestATaskThatWasCancelledInItsSubmitHasEnded(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, ctx := open(t, w, "1"), t.Context()
		for _, at := range []int{200, 600} { // before all of it is put, and after
			task, hosts := newTask(spec(), 600)
			hosts["late"], task.Total = []string{"fw1"}, 601
			err := q.Submit(ctx, task, hosts, func(n int) {
				if n != at {
					return
				}
				if c, err := q.Cancel(ctx, task.ID, "bob"); err != nil || c.Ended != at {
					t.Errorf("cancel: %+v, %v", c, err)
				}
			})
			if !errors.Is(err, queue.ErrCancelled) {
				t.Errorf("submit: %v", err)
			}
			got, err := q.Task(ctx, task.ID)
			if err != nil || got.State != jobs.TaskEnded || got.Outcomes[jobs.Cancelled] != got.Total ||
				got.Total < 600 || got.Cancelled != "bob" || !got.CancelledInSubmit {
				t.Errorf("cancelled at %d: %+v, %v", at, got, err)
			}
		}
		for _, of := range []string{zone, "late"} {
			r, err := q.Step(ctx, of, jobs.Step{Node: "n1", Slot: "1", Request: of, Want: 1})
			if err != nil || len(r.Jobs) > 0 {
				t.Errorf("zone %s handed out %v, %v", of, r.Jobs, err)
			}
		}
	})
}

// A task of which a job began was committed, even if Redis has forgotten that. It was not cancelled
// in its submit, so neither its tick nor its hosts are free for another task.
func TestATaskThatBeganWasNotCancelledInItsSubmit(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, ctx := open(t, w, "1"), t.Context()
		id := submit(t, q, spec(), 2)
		g := one(t, step(t, q, "1", 1))
		if _, err := q.Cancel(ctx, id, "bob"); err != nil {
			t.Fatal(err)
		}
		step(t, q, "1", 0, ended(g, jobs.Succeeded))
		key := "muster:{default}:task:" + string(id)
		when := w.raw(t).HGet(ctx, key, "committed").Val()
		w.raw(t).HDel(ctx, key, "committed")
		if got, err := q.Task(ctx, id); err != nil || got.CancelledInSubmit || got.State != jobs.TaskEnded {
			t.Errorf("%+v, %v", got, err)
		}
		w.raw(t).HSet(ctx, key, "committed", when)
	})
}

// A task of which Redis has lost a part is never whole again: the tasks behind it on the list of
// commits do not wait for it.
func TestACommitThatCannotBeKeepsNoOtherOne(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, dying, ctx := open(t, w, "1"), open(t, w, ""), t.Context()
		rdb, all := w.raw(t), []jobs.TaskID{}
		for range 6 { // a set has no order
			task, hosts := newTask(spec(), 1)
			dying.BeforeScript(string(task.ID), func(n int) error {
				if n > 1 {
					return errors.New("killed")
				}
				return nil
			})
			if err := dying.Submit(ctx, task, hosts, nil); err == nil {
				t.Fatal("it did not break off")
			}
			all = append(all, task.ID)
		}
		for _, id := range all[:3] {
			rdb.Del(ctx, "muster:{default}:held:"+string(id))
		}
		if err := q.Tend(ctx, zone); err == nil || strings.Count(err.Error(), "task ") != 3 {
			t.Errorf("said of three that are not whole: %v", err)
		}
		for i, id := range all {
			got, err := q.Task(ctx, id)
			if want := i < 3; err != nil || (got.State == jobs.TaskSubmitting) != want {
				t.Errorf("task %d is %s, %v", i, got.State, err)
			}
		}
		for range 2 { // the lost jobs end as unknown
			fsck(t, q, true)
		}
	})
}

// wantOne checks the state of the last job of the task.
func wantOne(t *testing.T, q *queuetest.Queue, id jobs.TaskID, want jobs.State) {
	t.Helper()
	if j := info(t, q, jobs.NewID(id, "fw0298")); j.State != want && j.State != jobs.Running {
		t.Errorf("it is %s, want %s", j.State, want)
	}
}
