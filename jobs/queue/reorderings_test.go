package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// asked returns a spec of an operator with a priority.
func asked(operator string, p jobs.Priority) jobs.Spec {
	s := spec()
	s.Operator, s.Priority = operator, p
	return s
}

func reorder(t *testing.T, q *queuetest.Queue) jobs.Reordering {
	t.Helper()
	r, err := q.Reorder(t.Context(), zone, jobs.DefaultOverload())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// cool ends the cool-down of a zone.
func cool(t *testing.T, w world) {
	t.Helper()
	if err := w.raw(t).Del(t.Context(), "muster:{"+zone+"}:overload").Err(); err != nil {
		t.Fatal(err)
	}
}

// taken takes n jobs, ends them, and returns the jobs in the order of their takes.
func taken(t *testing.T, q *queuetest.Queue, n int) (ids []jobs.ID) {
	t.Helper()
	var last []jobs.Result
	for range n {
		r := step(t, q, "1", 1, last...)
		g := one(t, r)
		ids = append(ids, g.Job)
		last = []jobs.Result{ended(g, jobs.Succeeded)}
	}
	step(t, q, "1", 0, last...)
	return ids
}

func tasksOf(ids []jobs.ID) (out []jobs.TaskID) {
	for _, id := range ids {
		out = append(out, id.Task())
	}
	return out
}

func TestASmallTaskBehindABigOne(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		alice := submit(t, q, asked("alice", ""), 2500)
		bob := submit(t, q, asked("bob", ""), 4)
		r := reorder(t, q)
		if !r.Did || r.Moved != 2504 || r.Why != jobs.ReorderDone || r.Again < 10*time.Second {
			t.Fatalf("reordering: %+v", r)
		}
		got := taken(t, q, 10)
		want := []jobs.TaskID{alice, bob, alice, bob, alice, bob, alice, bob, alice, alice}
		if !slices.Equal(tasksOf(got), want) {
			t.Errorf("the first are %v, alice's task is %s", got, alice)
		}
		for i, k := range []int{0, 2, 4, 6, 8, 9} {
			if want := jobs.NewID(alice, fmt.Sprintf("fw%04d", i)); got[k] != want {
				t.Errorf("job %d is %s, want %s: a task keeps its order", k, got[k], want)
			}
		}
	})
}

func TestPriorityAndOperatorsCountInAReordering(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		shares := func(by jobs.FairBy) map[jobs.TaskID]int {
			t.Helper()
			cool(t, w)
			o := jobs.DefaultOverload()
			o.FairBy = by
			if r, err := q.Reorder(t.Context(), zone, o); err != nil || !r.Did {
				t.Fatalf("%+v, %v", r, err)
			}
			n := map[jobs.TaskID]int{}
			for _, id := range tasksOf(taken(t, q, 30)) {
				n[id]++
			}
			return n
		}
		low := submit(t, q, asked("alice", jobs.PriorityLow), 100)
		high := submit(t, q, asked("alice", jobs.PriorityHigh), 100)
		if n := shares(jobs.FairByTask); n[high] != 24 || n[low] != 6 {
			t.Errorf("of 30 jobs %d are of high and %d of low priority", n[high], n[low])
		}
		bob := submit(t, q, asked("bob", jobs.PriorityLow), 100)
		if n := shares(jobs.FairByOperator); n[bob] != 15 || n[high] != 12 || n[low] != 3 {
			t.Errorf("alice's tasks got %d and %d, bob's %d", n[high], n[low], n[bob])
		}
	})
}

func TestOnlyOneReordersAndOnlyIfItIsWorthIt(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		if r := reorder(t, q); r.Did || r.Again == 0 {
			t.Errorf("of an empty queue: %+v", r)
		}
		submit(t, q, spec(), 20)
		if r := reorder(t, q); r.Did {
			t.Errorf("of one task: %+v", r)
		}
		submit(t, q, spec(), 2)
		submit(t, q, spec(), 20)
		if r := reorder(t, q); !r.Did {
			t.Fatalf("first: %+v", r)
		}
		if r := reorder(t, q); r.Did || r.Again <= 0 || r.Again > 10*time.Second {
			t.Errorf("in the cool-down: %+v", r)
		}
		cool(t, w)
		if r := reorder(t, q); r.Did {
			t.Errorf("no task came or went: %+v", r)
		}
		taken(t, q, 5) // both jobs of the small task are among them
		if r := reorder(t, q); !r.Did {
			t.Errorf("a task ended: %+v", r)
		}
		cool(t, w)
		submit(t, q, spec(), 1)
		if r := reorder(t, q); !r.Did {
			t.Errorf("a task came: %+v", r)
		}
	})
}

func TestATaskOfLaterIsLeftAlone(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		later, hosts := newTask(spec(), 3)
		later.At = jobs.MicrosOf(time.Now().Add(time.Hour))
		if err := q.Submit(t.Context(), later, hosts, nil); err != nil {
			t.Fatal(err)
		}
		submit(t, q, spec(), 5)
		submit(t, q, spec(), 2)
		if r := reorder(t, q); r.Moved != 7 {
			t.Fatalf("%+v", r)
		}
		if j := info(t, q, jobs.NewID(later.ID, "fw0000")); j.Next.UnixMicro() != int64(later.At) {
			t.Errorf("a job of later was moved to %s", j.Next)
		}
		taken(t, q, 7)
		if r := step(t, q, "1", 1); r.Status != jobs.StatusNext || r.Next != later.At {
			t.Errorf("%+v", r)
		}
	})
}

// Jobs change between the reading and the moving of a chunk.
func TestWhatChangedMeanwhileIsLeftAlone(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		walker, q := open(t, w, "2"), open(t, w, "1")
		first := submit(t, q, spec(), 250)
		gone := submit(t, q, spec(), 10)
		submit(t, q, spec(), 10)
		walker.BeforeScript("chunk", func(n int) error {
			if n != 2 {
				return nil
			}
			_, err := q.Cancel(t.Context(), gone, "wrong ruleset")
			return err
		})
		if r := reorder(t, walker); r.Why != jobs.ReorderDone || r.Moved != 260 {
			t.Errorf("with a cancelled task: %+v", r)
		}
		cool(t, w)
		submit(t, q, spec(), 10)
		walker.BeforeScript("chunk", func(n int) error {
			if n == 2 { // all jobs that were read are taken before the move
				step(t, q, "1", 256)
			}
			return nil
		})
		if r := reorder(t, walker); r.Why != jobs.ReorderMet {
			t.Errorf("with a job that a worker took: %+v", r)
		}
		if got, err := q.Task(t.Context(), first); err != nil || got.Running == 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// A score that has changed since it was read is not overwritten.
func TestAScoreThatChangedMeanwhileIsLeftAlone(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		first := submit(t, q, spec(), 300)
		submit(t, q, spec(), 10)
		c, key := w.raw(t), "muster:{"+zone+"}:queue"
		id, later := string(jobs.NewID(first, "fw0250")), float64(1<<52)
		q.BeforeScript("chunk", func(n int) error {
			if n != 2 { // the first only reads
				return nil
			}
			return c.ZAdd(t.Context(), key, redis.Z{Score: later, Member: id}).Err()
		})
		if r := reorder(t, q); r.Why != jobs.ReorderDone || r.Moved != 309 {
			t.Errorf("%+v", r)
		}
		if got := c.ZScore(t.Context(), key, id).Val(); got != later {
			t.Errorf("its score is %.0f, want %.0f as it was set meanwhile", got, later)
		}
	})
}

func TestAWalkThatLostItsLockEnds(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 500)
		submit(t, q, spec(), 3)
		q.BeforeScript("chunk", func(n int) error {
			if n == 2 {
				cool(t, w)
			}
			return nil
		})
		if r := reorder(t, q); r.Why != jobs.ReorderLost || r.Moved != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func TestAWalkCanBeStopped(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 900)
		submit(t, q, spec(), 3)
		ctx, stop := context.WithCancel(t.Context())
		q.BeforeScript("chunk", func(n int) error {
			if n == 3 {
				stop()
			}
			return nil
		})
		r, err := q.Reorder(ctx, zone, jobs.DefaultOverload())
		if err != nil || r.Why != jobs.ReorderStopped || r.Moved == 0 || r.Moved > 500 || r.Again == 0 {
			t.Errorf("%+v, %v", r, err)
		}
		cool(t, w)
		if r := reorder(t, q); !r.Did {
			t.Errorf("a walk that was stopped is not the last word: %+v", r)
		}
	})
}

var errCrash = errors.New("crash")

// fill submits random tasks to a zone.
func fill(t *rapid.T, q *queuetest.Queue, zone string) {
	for range rapid.IntRange(2, 6).Draw(t, "tasks") {
		n := rapid.OneOf(rapid.IntRange(1, 30), rapid.IntRange(200, 1300)).Draw(t, "jobs")
		task, hosts := newTask(asked("alice", rapid.SampledFrom(jobs.Priorities()).Draw(t, "priority")), n)
		if err := q.Submit(tctx(t), task, map[string][]string{zone: hosts["default"]}, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// queued returns the queue of a zone.
func queued(t *rapid.T, rdb *redis.Client, zone string) map[string]float64 {
	list, err := rdb.ZRangeWithScores(tctx(t), "muster:{"+zone+"}:queue", 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, z := range list {
		out[fmt.Sprint(z.Member)] = z.Score
	}
	return out
}

// A crash after any chunk leaves every job in the queue, no job moved past now or onto another, and
// the moved jobs in front.
func TestACrashAfterAnyChunkLeavesAValidQueue(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t, "--appendonly", "no")
	w := world{cfg: s.Config()}
	w.cfg.Unsafe = true
	q, rdb := open(t, w, ""), raw(t, s.Addr)
	checks := 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		zone := fmt.Sprint("z", checks)
		fill(t, q, zone)
		before := queued(t, rdb, zone)
		walker, err := queuetest.OpenLazy(w.cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer walker.Close()
		crash := rapid.IntRange(1, 20).Draw(t, "crash before chunk")
		crashed := false
		for _, op := range []string{"chunk", "done"} {
			walker.BeforeScript(op, func(n int) error {
				if crashed || n == crash {
					crashed = true
					return errCrash
				}
				return nil
			})
		}
		r, err := walker.Reorder(tctx(t), zone, jobs.DefaultOverload())
		if crashed != errors.Is(err, errCrash) || !r.Did {
			t.Fatalf("crashed %t: %+v, %v", crashed, r, err)
		}
		checkMoved(t, before, queued(t, rdb, zone), r.Moved)
		if wrong := redistest.Mistakes(tctx(t), w.cfg.URL, zone); len(wrong) > 0 {
			t.Fatalf("fsck: %v", wrong)
		}
		if !crashed && r.Moved != len(before) {
			t.Fatalf("%d of %d jobs were moved", r.Moved, len(before))
		}
	})
}

func checkMoved(t *rapid.T, before, after map[string]float64, moved int) {
	now := float64(time.Now().UnixMicro())
	if len(after) != len(before) {
		t.Fatalf("%d jobs before, %d after", len(before), len(after))
	}
	oldest := now
	for _, score := range before {
		oldest = min(oldest, score)
	}
	seen := map[float64]string{}
	for id, score := range after {
		if score > now || score <= 0 || score != float64(int64(score)) {
			t.Fatalf("%s is at %f", id, score)
		}
		if score == before[id] {
			continue
		}
		moved--
		if other := seen[score]; other != "" || score >= oldest {
			t.Fatalf("%s is at %f, where %q is too; the oldest was at %f", id, score, other, oldest)
		}
		seen[score] = id
	}
	if moved != 0 {
		t.Fatalf("%d more jobs are said to have been moved", moved)
	}
}

// Takers work while others reorder repeatedly: every job runs once.
func TestTakingWhileReorderingNeverTakesAJobTwice(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t, "--appendonly", "no")
	cfg := s.Config()
	cfg.Unsafe = true
	q := open(t, world{cfg: cfg}, "")
	const each, tasks, takers = 700, 6, 4
	rdb := raw(t, s.Addr)
	total := 0
	for i := range tasks {
		n := each >> i
		submit(t, q, spec(), n) // all on the same hosts: some are blocked, too
		total += n
	}
	var mu sync.Mutex
	seen := map[jobs.ID]int{}
	var work, walks sync.WaitGroup
	over := make(chan struct{})
	for i := range takers {
		work.Go(func() {
			takeAll(t, cfg, fmt.Sprint(i), func(id jobs.ID) bool {
				mu.Lock()
				defer mu.Unlock()
				seen[id]++
				return len(seen) == total
			})
		})
	}
	moved := 0
	walks.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			rdb.Del(context.Background(), "muster:{default}:overload")
			rdb.HDel(context.Background(), "muster:{default}:zone", "walked")
			r, err := q.Reorder(context.Background(), zone, jobs.DefaultOverload())
			if err != nil {
				t.Error(err)
				return
			}
			moved += r.Moved
		}
	})
	work.Wait()
	close(over)
	walks.Wait()
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was taken %d times", id, n)
		}
	}
	if len(seen) != total || moved < total/4 {
		t.Errorf("%d of %d jobs were taken, %d moved", len(seen), total, moved)
	}
	redistest.Check(t, cfg.URL, zone)
}

// takeAll acts as one worker until took reports that the last job of all was taken.
func takeAll(t *testing.T, cfg queue.Config, slot string, took func(jobs.ID) bool) {
	cfg.Node, cfg.Slot = "n1", slot
	q, err := queuetest.OpenLazy(cfg)
	if err != nil {
		t.Error(err)
		return
	}
	defer q.Close()
	var last []jobs.Result
	for n, end := 0, false; !end || len(last) > 0; n++ {
		r, err := q.Step(context.Background(), zone, jobs.Step{Node: "n1", Slot: slot,
			Request: fmt.Sprint("w", n), Results: last, Want: 3})
		if err != nil || len(r.Late) > 0 {
			t.Errorf("%+v, %v", r, err)
			return
		}
		last = nil
		for _, g := range r.Jobs {
			end = took(g.Job) || end
			last = append(last, ended(g, jobs.Succeeded))
		}
		if r.Status == jobs.StatusNext && r.Next == 0 {
			return
		}
	}
}
