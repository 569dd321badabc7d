package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

const zone = "default"

// world is a Redis of one kind, as the suite uses it.
type world struct {
	cfg queue.Config
	// pass lets time pass in Redis for its TTLs and its TIME.
	pass func(time.Duration)
}

// raw returns a plain client of the server that has the zone, for commands that muster never gives.
func (w world) raw(t *testing.T) *redis.Client { return redistest.Raw(t, w.cfg, zone) }

// eachRedis runs a test on the embedded Redis, on a real server, on one that
// Sentinels watch over and on a cluster: the queue must do the same on all.
func eachRedis(t *testing.T, test func(t *testing.T, w world)) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		m, cfg := redistest.StartMini(t)
		now := time.Now()
		m.SetTime(now)
		test(t, world{cfg, func(d time.Duration) {
			now = now.Add(d)
			m.SetTime(now)
			m.FastForward(d)
		}})
		redistest.CheckIn(t, cfg, zone)
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		// The client is the user that etc/users.acl has for servers.
		s := withUsers(t, nil)
		test(t, world{s.As(keys.RoleServer), nil})
		redistest.CheckIn(t, s.Config(), zone)
		redistest.CheckRefusals(t, s)
	})
	// All tests share these servers, and one test at a time uses them, also among parallel tests.
	t.Run("sentinel", func(t *testing.T) {
		sharing.Lock()
		t.Cleanup(sharing.Unlock)
		s := sharedSentinels()
		redistest.Empty(t, s.Servers[:1])
		test(t, world{s.Config(), nil})
		redistest.CheckIn(t, s.Config(), zone)
	})
	t.Run("cluster", func(t *testing.T) {
		sharing.Lock()
		t.Cleanup(sharing.Unlock)
		c := sharedCluster()
		redistest.Empty(t, c.Nodes)
		test(t, world{c.Config(), nil})
		redistest.CheckIn(t, c.Config(), zone)
	})
	t.Run("a Redis of its own", func(t *testing.T) {
		sharing.Lock()
		t.Cleanup(sharing.Unlock)
		a := sharedApart()
		redistest.Empty(t, []*redistest.Server{a.Hub, a.Own})
		test(t, world{a.Config(), nil})
		redistest.CheckIn(t, a.Config(), zone)
	})
}

// sharing is held by the test that uses the shared servers.
var sharing sync.Mutex

func open(t *testing.T, w world, slot string) *queuetest.Queue {
	t.Helper()
	if slot != "" {
		w.cfg.Node, w.cfg.Slot = "n1", slot
	}
	q, err := queuetest.Open(t.Context(), w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

func spec() jobs.Spec {
	return jobs.Spec{Runbook: "exec", Operator: "alice", Timeout: time.Minute,
		Expire: jobs.DefaultExpire, Retry: jobs.DefaultPolicy(), Created: jobs.MicrosOf(time.Now())}
}

var taskCount, request atomic.Uint32

func newTask(s jobs.Spec, hosts int) (jobs.Task, map[string][]string) {
	names := make([]string, hosts)
	for i := range names {
		names[i] = fmt.Sprintf("fw%04d", i)
	}
	return jobs.Task{ID: jobs.NewTaskID(time.Now(), uint16(taskCount.Add(1))), Spec: s, Total: hosts},
		map[string][]string{zone: names}
}

func submit(t *testing.T, q *queuetest.Queue, s jobs.Spec, hosts int) jobs.TaskID {
	t.Helper()
	task, names := newTask(s, hosts)
	if err := q.Submit(t.Context(), task, names, nil); err != nil {
		t.Fatal(err)
	}
	return task.ID
}

func step(t *testing.T, q *queuetest.Queue, slot string, want int, results ...jobs.Result) jobs.Reply {
	t.Helper()
	return repeat(t, q, jobs.Step{Node: "n1", Slot: slot, Request: fmt.Sprint("r", request.Add(1)),
		Results: results, Want: want})
}

func repeat(t *testing.T, q *queuetest.Queue, s jobs.Step) jobs.Reply {
	t.Helper()
	r, err := q.Step(t.Context(), zone, s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func one(t *testing.T, r jobs.Reply) jobs.Grant {
	t.Helper()
	if len(r.Jobs) != 1 {
		t.Fatalf("got %d jobs (%s), want 1", len(r.Jobs), r.Status)
	}
	return r.Jobs[0]
}

func ended(g jobs.Grant, o jobs.Outcome) jobs.Result {
	return jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd, Outcome: o}
}

func info(t *testing.T, q *queuetest.Queue, id jobs.ID) jobs.JobInfo {
	t.Helper()
	j, err := q.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func wantState(t *testing.T, q *queuetest.Queue, id jobs.ID, s jobs.State, o jobs.Outcome) jobs.JobInfo {
	t.Helper()
	j := info(t, q, id)
	if j.State != s || j.Outcome != o {
		t.Fatalf("job is %s/%q, want %s/%q", j.State, j.Outcome, s, o)
	}
	return j
}

func TestATaskRunsToItsEnd(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 1200)
		seen := map[jobs.ID]bool{}
		r := step(t, q, "1", 1)
		for r.Status == jobs.StatusJobs {
			g := one(t, r)
			if seen[g.Job] {
				t.Fatalf("%s was handed out twice", g.Job)
			}
			seen[g.Job] = true
			if g.Mode != jobs.ModeFresh || g.Attempt != 1 || g.Timeout != time.Minute {
				t.Fatalf("grant is %+v", g)
			}
			code := 0
			res := ended(g, jobs.Succeeded)
			res.ExitCode, res.Output = &code, []byte("hi\xff\x00\n")
			r = step(t, q, "1", 1, res)
		}
		if r.Status != jobs.StatusNext || r.Next != 0 {
			t.Errorf("at the end: %s, next %d", r.Status, r.Next)
		}
		got, err := q.Task(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != 1200 || got.State != jobs.TaskEnded || got.Outcomes[jobs.Succeeded] != 1200 ||
			got.Total != 1200 || got.Running != 0 || got.Finished.IsZero() {
			t.Errorf("%d jobs were handed out; task is %+v", len(seen), got)
		}
		j := wantState(t, q, jobs.NewID(id, "fw0007"), jobs.Ended, jobs.Succeeded)
		if j.ExitCode == nil || *j.ExitCode != 0 || j.Started.IsZero() || j.Finished.IsZero() {
			t.Errorf("job is %+v", j)
		}
		wantOutput(t, "the output", outputOf(t, q, j.ID), piece(0, "hi\xff\x00\n"))
	})
}

func TestSpecAndHostComeWithTheGrant(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		h := fleet.Host{Name: "fw0000", Address: "127.0.0.2", Port: 22, Zone: zone,
			HostKeys: []string{"ssh-ed25519 AAAA"}, Labels: map[string]string{"Rack": "R1"}}
		if err := q.Publish(t.Context(), "v1", []fleet.Host{h}, nil); err != nil {
			t.Fatal(err)
		}
		s := spec()
		s.Inventory, s.Action = "v1", []byte(`{"a":"b\n\t"}`)
		id := submit(t, q, s, 2)
		r := step(t, q, "1", 1)
		g := one(t, r)
		if g.Host == nil || g.Host.Address != "127.0.0.2" || g.Host.Labels["Rack"] != "R1" {
			t.Errorf("host is %+v", g.Host)
		}
		if string(r.Specs[id].Action) != string(s.Action) || r.Specs[id].Operator != "alice" {
			t.Errorf("spec is %+v", r.Specs)
		}
		r = repeat(t, q, jobs.Step{Node: "n1", Slot: "1", Request: "x", Want: 1,
			Known: []jobs.TaskID{id}})
		if g := one(t, r); g.Host != nil || len(r.Specs) != 0 {
			t.Errorf("host %+v, specs %v: want none of both", g.Host, r.Specs)
		}
	})
}

func TestARepeatedRequestGetsTheEarlierAnswer(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 10)
		s := jobs.Step{Node: "n1", Slot: "1", Request: "a", Want: 3}
		first := repeat(t, q, s)
		second := repeat(t, q, s)
		if len(first.Jobs) != 3 || fmt.Sprint(first.Jobs) != fmt.Sprint(second.Jobs) {
			t.Errorf("first %v\nsecond %v", first.Jobs, second.Jobs)
		}
		if len(second.Specs) != 1 {
			t.Errorf("a repetition lacks the spec")
		}
		s = jobs.Step{Node: "n1", Slot: "1", Request: "b", Want: 1,
			Results: []jobs.Result{ended(first.Jobs[0], jobs.Succeeded)}}
		first = repeat(t, q, s)
		second = repeat(t, q, s)
		if fmt.Sprint(first.Jobs) != fmt.Sprint(second.Jobs) || len(second.Late) != 0 {
			t.Errorf("first %v\nsecond %v", first, second)
		}
		got, _ := q.Task(t.Context(), id)
		if got.Outcomes[jobs.Succeeded] != 1 || got.Running != 3 {
			t.Errorf("task is %+v", got)
		}
	})
}

func TestAResultOfAnEarlierAttemptIsLate(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		// The epoch is long ago: a result with the right token frees its host unread.
		if err := w.raw(t).HSet(t.Context(), "muster:{"+zone+"}:zone", "longest", 0).Err(); err != nil {
			t.Fatal(err)
		}
		stale := ended(g, jobs.Succeeded)
		stale.Token--
		r := step(t, q, "1", 0, stale)
		if len(r.Late) != 1 {
			t.Errorf("late is %v", r.Late)
		}
		wantState(t, q, g.Job, jobs.Running, "")
		step(t, q, "1", 0, ended(g, jobs.Failed))
		r = step(t, q, "1", 0, ended(g, jobs.Succeeded))
		if len(r.Late) != 1 {
			t.Errorf("a second outcome was not late: %v", r)
		}
		wantState(t, q, jobs.NewID(id, "fw0000"), jobs.Ended, jobs.Failed)
	})
}

func TestNothingRunsOfAHalfSubmit(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		task, hosts := newTask(spec(), 1100)
		ctx, cancel := context.WithCancel(t.Context())
		err := q.Submit(ctx, task, hosts, func(n int) {
			if n == 200 {
				cancel() // the submitter dies after the first chunk
			}
		})
		if err == nil {
			t.Fatal("a cancelled submit succeeded")
		}
		if r := step(t, q, "1", 1); r.Status != jobs.StatusNext {
			t.Errorf("a job of a half submit was handed out: %v", r)
		}
		if got, err := q.Task(t.Context(), task.ID); err != nil || got.State != jobs.TaskSubmitting {
			t.Errorf("task is %+v, %v", got, err)
		}
		other := task
		other.Spec.Operator = "bob"
		if err := q.Submit(t.Context(), other, hosts, nil); !errors.Is(err, queue.ErrConflict) {
			t.Errorf("another submit with the same id: %v", err)
		}
		if got, err := q.Task(t.Context(), task.ID); err != nil || got.Operator != "alice" {
			t.Errorf("the other submit changed the task: %+v, %v", got, err)
		}
		task.Spec.Created++ // the same submit, made again later
		for range 2 {       // completed, and completing it again does no harm
			if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
				t.Fatal(err)
			}
		}
		if r := step(t, q, "1", 200); len(r.Jobs) != 200 {
			t.Errorf("got %d jobs", len(r.Jobs))
		}
		if d, err := q.Depth(t.Context(), zone); err != nil || d.Queued+d.Again != 1100 {
			t.Errorf("depth is %+v, %v", d, err)
		}
	})
}

func TestOneJobOnAHostAtATime(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		second := jobs.NewID(submit(t, q, spec(), 1), "fw0000")
		g := one(t, step(t, q, "1", 2))
		wantState(t, q, second, jobs.Blocked, "")
		r := step(t, q, "1", 1, ended(g, jobs.Succeeded))
		if r.Status != jobs.StatusMore {
			t.Errorf("status %s, want more: somebody was woken", r.Status)
		}
		if r = step(t, q, "1", 1); one(t, r).Job != second {
			t.Errorf("the waiting job was not woken: %v", r)
		}
	})
}

func TestRetryComesAgainAfterItsDelay(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		r := step(t, q, "1", 1, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindRetry,
			Delay: 5 * time.Second, Error: "connection \"refused\"", Step: 2, Saved: `{"k":"v"}`})
		if r.Status != jobs.StatusNext || r.Next.Sub(r.Now) != 5*time.Second {
			t.Fatalf("status %s, next in %s", r.Status, r.Next.Sub(r.Now))
		}
		wantState(t, q, g.Job, jobs.Retry, "")
		if w.pass == nil {
			return // a real server's time does not pass on demand
		}
		w.pass(5 * time.Second)
		again := one(t, step(t, q, "1", 1))
		if again.Mode != jobs.ModeContinue || again.Attempt != 2 || again.Tries != 1 ||
			again.Step != 2 || again.Saved != `{"k":"v"}` || again.Token <= g.Token {
			t.Errorf("grant is %+v", again)
		}
	})
}

func TestBackGivesTheAttemptBack(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		r := step(t, q, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
		if r.Status != jobs.StatusNext {
			t.Fatalf("status %s", r.Status)
		}
		wantState(t, q, g.Job, jobs.Queued, "")
		again := one(t, step(t, q, "1", 1))
		if again.Mode != jobs.ModeFresh || again.Attempt != 1 || again.Tries != 0 {
			t.Errorf("grant is %+v", again)
		}
	})
}

func TestALaterTaskWaitsForItsTime(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		task, hosts := newTask(spec(), 1)
		task.At = jobs.MicrosOf(time.Now().Add(time.Hour))
		if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
			t.Fatal(err)
		}
		r := step(t, q, "1", 1)
		if r.Status != jobs.StatusNext || r.Next != task.At {
			t.Errorf("status %s, next %s, want %s", r.Status, r.Next, task.At)
		}
	})
}

func TestTenThousandJobsOfTheSameMicrosecond(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 10000)
		seen := map[jobs.ID]bool{}
		var results []jobs.Result
		for {
			r := step(t, q, "1", 250, results...)
			results = results[:0]
			for _, g := range r.Jobs {
				if seen[g.Job] {
					t.Fatalf("%s twice", g.Job)
				}
				seen[g.Job] = true
				results = append(results, ended(g, jobs.Succeeded))
			}
			if len(r.Jobs) == 0 {
				if r.Status != jobs.StatusNext {
					t.Fatalf("after %d jobs: %s", len(seen), r.Status)
				}
				break
			}
		}
		if len(seen) != 10000 {
			t.Errorf("%d jobs were handed out", len(seen))
		}
	})
}

func TestASpecThatCannotBeReadStopsNobodyElse(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 2)
		c := w.raw(t)
		c.HSet(t.Context(), "muster:{default}:task:"+string(id), "spec", "{", "inventory", "v")
		c.HSet(t.Context(), "muster:{default}:hosts:v", "fw0000", "}", "fw0001", "}")
		r := step(t, q, "1", 2)
		if len(r.Jobs) != 2 || len(r.Unread) != 3 || r.Unread[string(id)] == "" || r.Jobs[0].Host != nil {
			t.Errorf("reply is %+v", r)
		}
	})
}
