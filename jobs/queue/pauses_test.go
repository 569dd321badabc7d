package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/model"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// paused reports which of these Redis has paused: the zone, the customer acme, a task.
func paused(t *testing.T, rdb *redis.Client, id jobs.TaskID) [3]bool {
	t.Helper()
	z, err := rdb.HMGet(t.Context(), "muster:{default}:zone", "paused", "customers").Result()
	if err != nil {
		t.Fatal(err)
	}
	task, err := rdb.HMGet(t.Context(), "muster:{default}:task:"+string(id), "paused").Result()
	if err != nil {
		t.Fatal(err)
	}
	customers, _ := z[1].(string)
	return [3]bool{z[0] != nil, strings.Contains(customers, `"acme"`), task[0] != nil}
}

// A zone may not have received an order, because it did not answer or has forgotten it: a server
// repeats the order until the zone carries it out.
func TestAPauseIsRepeatedUntilAZoneHasHeardOfIt(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, rdb := open(t, w, "1"), w.raw(t)
		publish(t, q, 2, -1)
		s := spec()
		s.Inventory = "v-1"
		id := submit(t, q, s, 2)
		submit(t, q, s, 2)
		keys := map[string][]string{"muster:{default}:zone": {"paused", "pausedAt", "pausedId", "customers"},
			"muster:{default}:task:" + string(id): {"paused", "pausedNote", "pausedId"}}
		tend := func(want [3]bool) {
			t.Helper()
			if err := q.Tend(t.Context(), zone); err != nil {
				t.Fatal(err)
			}
			if got := paused(t, rdb, id); got != want {
				t.Fatalf("paused are zone, customer, task: %v, want %v", got, want)
			}
		}
		for _, order := range []struct {
			pause, resume func() (jobs.Switched, error)
			want          [3]bool
		}{
			{func() (jobs.Switched, error) { return q.PauseZone(t.Context(), zone, "alice: x") },
				func() (jobs.Switched, error) { return q.ResumeZone(t.Context(), zone, "alice: y") },
				[3]bool{true, false, false}},
			{func() (jobs.Switched, error) { return q.PauseCustomer(t.Context(), "acme", "alice: x") },
				func() (jobs.Switched, error) { return q.ResumeCustomer(t.Context(), "acme", "alice: y") },
				[3]bool{false, true, false}},
			{func() (jobs.Switched, error) { return q.Pause(t.Context(), id, "alice: x") },
				func() (jobs.Switched, error) { return q.Resume(t.Context(), id, "alice: y") },
				[3]bool{false, false, true}},
		} {
			if p, err := order.pause(); err != nil || p.Already {
				t.Fatalf("pause: %+v, %v", p, err)
			}
			tend(order.want)
			kept := map[string]map[string]string{}
			for key, fields := range keys {
				all, err := rdb.HGetAll(t.Context(), key).Result()
				if err != nil {
					t.Fatal(err)
				}
				kept[key] = map[string]string{}
				for _, field := range fields {
					if v, ok := all[field]; ok {
						kept[key][field] = v
					}
				}
				if err := rdb.HDel(t.Context(), key, fields...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			tend(order.want) // the zone had forgotten the pause
			if p, err := order.resume(); err != nil || p.Already {
				t.Fatalf("resume: %+v, %v", p, err)
			}
			for key, fields := range kept {
				if len(fields) > 0 {
					if err := rdb.HSet(t.Context(), key, fields).Err(); err != nil {
						t.Fatal(err)
					}
				}
			}
			tend([3]bool{}) // and its end
		}
	})
}

// A duty reads a pause in the hub; before the duty gives it to a zone, somebody ends the pause. The
// zone is not paused after that look of the duty.
func TestAPauseThatEndsMeanwhileDoesNotStay(t *testing.T) {
	t.Parallel()
	w := world{cfg: redistest.StartServer(t).Config()}
	q, rdb := open(t, w, "1"), w.raw(t)
	publish(t, q, 2, -1)
	s := spec()
	s.Inventory = "v-1"
	id := submit(t, q, s, 2)
	for _, one := range []struct {
		verb          string
		pause, resume func() (jobs.Switched, error)
	}{
		{"pause-zone", func() (jobs.Switched, error) { return q.PauseZone(t.Context(), zone, "alice: x") },
			func() (jobs.Switched, error) { return q.ResumeZone(t.Context(), zone, "alice: y") }},
		{"pause-customer",
			func() (jobs.Switched, error) { return q.PauseCustomer(t.Context(), "acme", "alice: x") },
			func() (jobs.Switched, error) { return q.ResumeCustomer(t.Context(), "acme", "alice: y") }},
		{"pause", func() (jobs.Switched, error) { return q.Pause(t.Context(), id, "alice: x") },
			func() (jobs.Switched, error) { return q.Resume(t.Context(), id, "alice: y") }},
	} {
		if _, err := one.pause(); err != nil {
			t.Fatal(err)
		}
		for key, fields := range map[string][]string{
			"muster:{default}:zone":               {"paused", "pausedAt", "pausedId", "customers"},
			"muster:{default}:task:" + string(id): {"paused", "pausedNote", "pausedId"}} {
			if err := rdb.HDel(t.Context(), key, fields...).Err(); err != nil {
				t.Fatal(err)
			}
		}
		tending := open(t, w, "2")
		tending.AddHook(&meanwhile{word: one.verb, do: func() {
			if _, err := one.resume(); err != nil {
				t.Error(err)
			}
		}})
		if err := tending.Tend(t.Context(), zone); err != nil {
			t.Fatal(err)
		}
		if got := paused(t, rdb, id); got != [3]bool{} {
			t.Errorf("%s: paused are zone, customer, task: %v", one.verb, got)
		}
	}
}

// meanwhile calls do once, before the first command that has a word.
type meanwhile struct {
	word string
	do   func()
	once sync.Once
}

func (b *meanwhile) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b *meanwhile) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(cmd.Args(), any(b.word)) {
			b.once.Do(b.do)
		}
		return next(ctx, cmd)
	}
}

func (b *meanwhile) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// An order that no zone has confirmed says that it stands all the same; an order that some zones
// have confirmed names the others.
func TestAZoneThatCannotBeAskedIsPausedLater(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		if err := q.Publish(t.Context(), "v-2", []fleet.Host{{Name: "eu1", Zone: "eu"}}, nil); err != nil {
			t.Fatal(err)
		}
		rdb := redistest.Raw(t, w.cfg, "eu")
		key := "muster:{eu}:zone"
		if err := rdb.Rename(t.Context(), key, key+"-away").Err(); err != nil {
			t.Fatal(err)
		}
		if err := rdb.Set(t.Context(), key, "no hash", 0).Err(); err != nil {
			t.Fatal(err)
		}
		p, err := q.PauseCustomer(t.Context(), "acme", "alice: x")
		// A new connection to the node of both zones cannot be opened, so the number of running jobs is
		// not known.
		if err != nil && !strings.Contains(err.Error(), ": running: ") ||
			!slices.Equal(p.Missing, []string{"eu"}) || !slices.Equal(p.Zones, []string{zone}) {
			t.Fatalf("pause of a customer: %+v, %v", p, err)
		}
		if _, err := q.PauseZone(t.Context(), "eu", "bob: y"); err == nil ||
			!strings.Contains(err.Error(), "a server repeats it until") {
			t.Fatalf("pause of a zone: %v", err)
		}
		if err := rdb.Rename(t.Context(), key+"-away", key).Err(); err != nil {
			t.Fatal(err)
		}
		if err := q.Tend(t.Context(), "eu"); err != nil {
			t.Fatal(err)
		}
		v, err := rdb.HMGet(t.Context(), key, "paused", "customers").Result()
		if err != nil || v[0] != "bob: y" || v[1] == nil {
			t.Errorf("the zone has %v, %v", v, err)
		}
	})
}

// A pause reports how many jobs it lets run, for everything that can be paused.
func TestAPauseTellsHowManyJobsGoOn(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 5, -1) // acme has fw0000, fw0002, fw0004
		s := spec()
		s.Inventory = "v-1"
		id := submit(t, q, s, 5)
		r := step(t, q, "1", 4)
		g := r.Jobs[3]
		step(t, q, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd,
			Outcome: jobs.Succeeded})
		for name, want := range map[string]int{"acme": 2, "beta": 1, "nobody": 0} {
			if p, err := q.PauseCustomer(t.Context(), name, "x"); err != nil || p.Running != want {
				t.Errorf("pause of %s: %+v, %v, want %d running", name, p, err, want)
			}
		}
		if p, err := q.PauseZone(t.Context(), zone, "x"); err != nil || p.Running != 3 {
			t.Errorf("pause of the zone: %+v, %v, want 3 running", p, err)
		}
		if p, err := q.Pause(t.Context(), id, "x"); err != nil || p.Running != 3 {
			t.Errorf("pause of the task: %+v, %v, want 3 running", p, err)
		}
		if p, err := q.Halt(t.Context(), "x"); err != nil || p.Running != 3 {
			t.Errorf("halt: %+v, %v, want 3 running", p, err)
		}
	})
}

// The jobs of one zone ended under a pause: the pause is over with the resume of the other zones,
// because nobody looks at that zone again.
func TestAResumedTaskIsNotPausedByAZoneThatHasEnded(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		task, hosts := newTask(spec(), 2)
		hosts["eu"] = []string{"eu1"}
		task.Total = 3
		if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Pause(t.Context(), task.ID, "alice: x"); err != nil {
			t.Fatal(err)
		}
		if _, err := q.CancelJobs(t.Context(), []jobs.ID{jobs.NewID(task.ID, "eu1")}, "bob"); err != nil {
			t.Fatal(err)
		}
		got, err := q.Task(t.Context(), task.ID)
		if err != nil || got.State != jobs.TaskPaused || got.Paused != "alice: x" {
			t.Fatalf("while it is paused: %s, %q, %v", got.State, got.Paused, err)
		}
		if p, err := q.Resume(t.Context(), task.ID, "alice: y"); err != nil || p.Moved != 2 {
			t.Fatalf("resume: %+v, %v", p, err)
		}
		if got, err = q.Task(t.Context(), task.ID); err != nil || got.State != jobs.TaskQueued ||
			got.Paused != "" {
			t.Errorf("after the resume: %s, %q, %v", got.State, got.Paused, err)
		}
	})
}

// A standing pause belongs to the last person who ordered it: a resume that was ordered before
// that, and arrives late, does not end it.
func TestALateResumeDoesNotEndAPauseThatWasOrderedAgain(t *testing.T) {
	twins(t, func(t *testing.T, w *twin) {
		calm(t, w, "fw0")
		var task jobs.TaskID
		for task = range w.zone.Tasks {
		}
		order := map[string]func(pause bool, number int64){
			"zone": func(pause bool, number int64) {
				verb := map[bool]string{true: "pause-zone", false: "resume-zone"}[pause]
				w.control(t, model.Turn{Verb: verb, Note: "carol", Number: number})
			},
			"customer": func(pause bool, number int64) {
				verb := map[bool]string{true: "pause-customer", false: "resume-customer"}[pause]
				w.control(t, model.Turn{Verb: verb, Object: "acme", Note: "carol", Number: number})
			},
			"task": func(pause bool, number int64) {
				verb := map[bool]string{true: "pause", false: "resume"}[pause]
				w.move(t, model.Move{Task: task, Verb: verb, Limit: 500, Note: "carol", Order: number})
			},
		}
		stands := map[string]func() bool{
			"zone":     func() bool { return w.zone.Flags.Paused.Note != "" },
			"customer": func() bool { return w.zone.Customers["acme"].Note != "" },
			"task":     func() bool { return w.zone.Tasks[task].Paused.Note != "" },
		}
		for what, give := range order {
			give(true, 1)
			give(true, 3) // it stands already
			give(true, 1) // a copy that was delayed
			give(false, 2)
			if !stands[what]() {
				t.Errorf("the resume 2 of a %s ends the pause 3", what)
			}
			give(false, 4)
			if stands[what]() {
				t.Errorf("the resume 4 of a %s does not end the pause 3", what)
			}
		}
	})
}

// A pause ends when nobody needs it any more because its task has ended. A copy of the orders does
// not show it as lost by Redis.
func TestThePauseOfATaskThatEndedIsNotLost(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 2)
		if _, err := q.Pause(t.Context(), id, "alice: lunch"); err != nil {
			t.Fatal(err)
		}
		kept, err := q.AgreedState(t.Context())
		if err != nil || len(kept.Parts[jobs.AgreedPauses].Fields) != 1 {
			t.Fatalf("%+v, %v", kept, err)
		}
		if _, err := q.Cancel(t.Context(), id, "bob"); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Resume(t.Context(), id, "alice: back"); err != nil {
			t.Fatal(err)
		}
		now, err := q.AgreedState(t.Context())
		if err != nil || kept.Parts[jobs.AgreedPauses].LostIn(now.Parts[jobs.AgreedPauses]) {
			t.Errorf("%+v is taken for lost (%v)", now.Parts[jobs.AgreedPauses], err)
		}
	})
}

// An order that was read, and is on its way to Redis, does not replace a newer one.
func TestAnOrderThatComesLateReplacesNoNewerOne(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	w := world{cfg: s.Config()}
	other, q := open(t, w, "1"), open(t, w, "1")
	id := submit(t, q, spec(), 2)
	turn := map[string][2]func(*queuetest.Queue) error{
		"halt": {
			func(q *queuetest.Queue) error { _, err := q.Halt(t.Context(), "alice: fire"); return err },
			func(q *queuetest.Queue) error { _, err := q.Lift(t.Context(), "bob: out"); return err },
		},
		"pauses": {
			func(q *queuetest.Queue) error { _, err := q.Pause(t.Context(), id, "alice: lunch"); return err },
			func(q *queuetest.Queue) error { _, err := q.Resume(t.Context(), id, "bob: back"); return err },
		},
	}
	for key, do := range turn {
		if err := do[0](q); err != nil {
			t.Fatal(err)
		}
		numbers := func() string {
			return fmt.Sprint(w.raw(t).HGetAll(t.Context(), "muster:{hub}:"+key).Val())
		}
		var once sync.Once
		var newest string
		q.AddHook(before{func(cmd redis.Cmder) {
			if cmd.Name() != "hset" || !strings.Contains(fmt.Sprint(cmd.Args()), "muster:{hub}:"+key) {
				return
			}
			once.Do(func() { // bob's order is on its way; another person lifts, and orders anew
				if err := errors.Join(do[1](other), do[0](other)); err != nil {
					t.Error(err)
				}
				newest = numbers()
			})
		}})
		if err := do[1](q); err != nil {
			t.Fatal(err)
		}
		if now := numbers(); newest == "" || now <= newest {
			t.Errorf("%s: %s stands behind %s", key, now, newest)
		}
	}
}
