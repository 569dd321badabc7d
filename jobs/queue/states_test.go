package queue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// machine makes random calls on a small queue and compares every change of a job with the table of
// states.
type machine struct {
	q      *queuetest.Queue
	tasks  []jobs.TaskID
	states map[jobs.ID]jobs.State
	slots  [2][]jobs.Grant // what the children of the node have in hand
	n      int
}

func (m *machine) step(t *rapid.T, slot, want int, results ...jobs.Result) {
	m.n++
	r, err := m.q.Step(tctx(t), zone, jobs.Step{Node: "n1", Slot: fmt.Sprint(slot),
		Request: fmt.Sprint(m.n), Want: want, Results: results})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range r.Jobs {
		for _, hand := range m.slots {
			for _, other := range hand {
				if other.Job.Host() == g.Job.Host() && g.Mode != jobs.ModeLost {
					t.Fatalf("%s is handed out while %s is in hand", g.Job, other.Job)
				}
			}
		}
	}
	m.slots[slot] = append(m.slots[slot], r.Jobs...)
}

// drop removes a random job from the hands of a slot.
func (m *machine) drop(t *rapid.T) (int, jobs.Grant, bool) {
	slot := rapid.IntRange(0, 1).Draw(t, "slot")
	hand := m.slots[slot]
	if len(hand) == 0 {
		return slot, jobs.Grant{}, false
	}
	i := rapid.IntRange(0, len(hand)-1).Draw(t, "job")
	g := hand[i]
	m.slots[slot] = append(append([]jobs.Grant{}, hand[:i]...), hand[i+1:]...)
	return slot, g, true
}

func (m *machine) result(t *rapid.T) {
	slot, g, ok := m.drop(t)
	if !ok {
		return
	}
	kind := rapid.SampledFrom([]jobs.Kind{jobs.KindEnd, jobs.KindRetry, jobs.KindWait,
		jobs.KindVerify, jobs.KindDefer, jobs.KindBack}).Draw(t, "kind")
	r := jobs.Result{Job: g.Job, Token: g.Token, Kind: kind, Delay: 7 * time.Second,
		Release: rapid.Bool().Draw(t, "release"), KeepLock: rapid.Bool().Draw(t, "keep")}
	if kind == jobs.KindEnd {
		r.Outcome = rapid.SampledFrom(jobs.Outcomes()).Draw(t, "outcome")
	}
	if kind == jobs.KindDefer {
		r.Until = jobs.MicrosOf(time.Now().Add(time.Hour))
	}
	if g.Mode == jobs.ModeLost && kind != jobs.KindEnd {
		r.Kind, r.KeepLock = jobs.KindBack, false
	}
	m.step(t, slot, rapid.IntRange(0, 2).Draw(t, "want"), r)
}

func (m *machine) lose(t *rapid.T) {
	slot := rapid.IntRange(0, 1).Draw(t, "slot")
	_, err := m.q.Lose(tctx(t), zone, jobs.Loss{Node: "n1", Slot: fmt.Sprint(slot), Why: "exit 2"})
	if err != nil {
		t.Fatal(err)
	}
	m.slots[slot] = nil
}

// check reads all jobs and fails the test if one of them changed in a way that the table lacks.
func (m *machine) check(t *rapid.T) {
	for _, id := range m.tasks {
		err := m.q.EachJob(tctx(t), id, 0, 500, func(list []jobs.JobInfo) error {
			for _, j := range list {
				before, known := m.states[j.ID]
				if known && before != j.State && !reachable(before, j.State) {
					return fmt.Errorf("job %s went from %s to %s", j.ID, before, j.State)
				}
				m.states[j.ID] = j.State
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// reachable reports whether one event leads from a to b.
func reachable(a, b jobs.State) bool {
	for _, e := range jobs.Events() {
		if n, err := a.Next(e); err == nil && n == b {
			return true
		}
	}
	return false
}

func TestEveryChangeIsInTheTable(t *testing.T) {
	t.Parallel()
	mini, cfg := redistest.StartMini(t)
	rapid.Check(t, func(t *rapid.T) {
		mini.FlushAll()
		now := time.Now()
		mini.SetTime(now)
		q, err := queuetest.Open(tctx(t), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		m := &machine{q: q, states: map[jobs.ID]jobs.State{}}
		if err := publishTo(tctx(t), q, 4, 2); err != nil {
			t.Fatal(err)
		}
		for i := range 2 { // two tasks on the same hosts
			s := spec()
			s.Inventory, s.Disruptive = "v2", i == 0
			task, hosts := newTask(s, 4)
			task.Guarded = true
			task.ID = jobs.NewTaskID(now, uint16(i))
			if err := q.Submit(tctx(t), task, hosts, nil); err != nil {
				t.Fatal(err)
			}
			m.tasks = append(m.tasks, task.ID)
		}
		t.Repeat(map[string]func(*rapid.T){
			"take":   func(t *rapid.T) { m.step(t, rapid.IntRange(0, 1).Draw(t, "slot"), 2) },
			"result": m.result,
			"lose":   m.lose,
			"sweep": func(t *rapid.T) {
				if _, err := q.Step(tctx(t), zone, jobs.Step{}); err != nil {
					t.Fatal(err)
				}
			},
			"cancel": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "seldom") == 0 {
					if _, err := q.Cancel(tctx(t), m.tasks[0], "test"); err != nil {
						t.Fatal(err)
					}
				}
			},
			"pause": func(t *rapid.T) {
				id := rapid.SampledFrom(m.tasks).Draw(t, "task")
				_, err := q.Pause(tctx(t), id, "test")
				if err == nil && rapid.Bool().Draw(t, "resume") {
					_, err = q.Resume(tctx(t), id, "test")
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			"customer": func(t *rapid.T) {
				_, err := q.PauseCustomer(tctx(t), "acme", "test")
				if err == nil && rapid.Bool().Draw(t, "resume") {
					_, err = q.ResumeCustomer(tctx(t), "acme", "test")
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			"clear": func(t *rapid.T) {
				_, err := q.ClearGroup(tctx(t), "pair-0", "test")
				if err != nil && !errors.Is(err, queue.ErrNotFound) {
					t.Fatal(err)
				}
			},
			"cancel job": func(t *rapid.T) {
				id := jobs.NewID(rapid.SampledFrom(m.tasks).Draw(t, "task"), "fw0002")
				if _, err := q.CancelJobs(tctx(t), []jobs.ID{id}, "test"); err != nil {
					t.Fatal(err)
				}
			},
			"time": func(t *rapid.T) {
				d := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second,
					70 * time.Second}).Draw(t, "d")
				now = now.Add(d)
				mini.SetTime(now)
				mini.FastForward(d)
				if d > time.Minute { // longer than every lock: jobs in hand are lost
					m.slots = [2][]jobs.Grant{}
				}
			},
			"": m.check,
		})
		for _, mistake := range redistest.Mistakes(tctx(t), cfg.URL, zone) {
			t.Error("fsck: " + mistake)
		}
	})
}
