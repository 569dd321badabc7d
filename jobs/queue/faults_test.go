package queue_test

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// raw returns a plain client, for commands that muster never gives.
func raw(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2})
	t.Cleanup(func() { c.Close() })
	return c
}

// quick returns a spec with a short lock, and so a short freeze.
func quick() jobs.Spec {
	s := spec()
	s.Timeout = 3 * time.Second
	return s
}

// thawed takes jobs as soon as the zone allows it, well before the end of a freeze that waits for a
// child.
func thawed(t *testing.T, q *queuetest.Queue, slot string) jobs.Reply {
	t.Helper()
	for late, look := time.After(8*time.Second), time.Tick(20*time.Millisecond); ; {
		r := step(t, q, slot, 1)
		if r.Status != jobs.StatusFrozen {
			return r
		}
		select {
		case <-late:
			t.Fatal("the zone stays frozen though every child has spoken")
		case <-look:
		}
	}
}

func TestAfterARestartNothingStartsBeforeTheChildrenSpoke(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t, "--appendfsync", "always")
	w := world{cfg: s.Config()}
	master, child := open(t, w, ""), open(t, w, "1")
	submit(t, master, quick(), 2)
	g := one(t, step(t, child, "1", 1))

	s.Kill()
	if _, err := child.Step(t.Context(), zone, jobs.Step{Node: "n1", Slot: "1", Request: "x"}); err == nil {
		t.Fatal("a step succeeded without Redis")
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	r := step(t, master, "2", 1)
	if r.Status != jobs.StatusFrozen || r.Next <= r.Now {
		t.Fatalf("status %s, next %d: want frozen, the child has not said what it holds", r.Status, r.Next)
	}
	if r = step(t, child, "1", 0, ended(g, jobs.Succeeded)); len(r.Late) != 0 {
		t.Errorf("the result of the child that spoke did not count: %+v", r)
	}
	one(t, thawed(t, child, "1"))
	wantState(t, master, g.Job, jobs.Ended, jobs.Succeeded)
	redistest.Check(t, s.Config().URL, zone)
}

func TestAChildThatDiedInTheRestartIsNotWaitedForOnceItIsLost(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t, "--appendfsync", "always")
	w := world{cfg: s.Config()}
	master, child := open(t, w, ""), open(t, w, "1")
	submit(t, master, quick(), 2)
	g := one(t, step(t, child, "1", 1))
	s.Kill()
	child.Close()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	if r := step(t, master, "2", 1); r.Status != jobs.StatusFrozen {
		t.Fatalf("status %s", r.Status)
	}
	if _, err := master.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1", Why: "exit 2"}); err != nil {
		t.Fatal(err)
	}
	if l := one(t, thawed(t, master, "2")); l.Job != g.Job || l.Mode != jobs.ModeLost {
		t.Errorf("grant is %+v", l)
	}
}

func TestRedisThatForgotIsToldWhatRuns(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	w := world{cfg: s.Config()}
	master, child := open(t, w, ""), open(t, w, "1")
	id := submit(t, master, spec(), 1)
	g := one(t, step(t, child, "1", 1))
	// As after a lost tail of the append-only file, the take never happened.
	c := raw(t, s.Addr)
	p := "muster:{default}:"
	c.HDel(t.Context(), p+"task:"+string(id), ":fw0000")
	c.Del(t.Context(), p+"locks", p+"hold:n1")
	c.ZRem(t.Context(), p+"again", string(g.Job))
	c.ZAdd(t.Context(), p+"queue", redis.Z{Score: 1, Member: string(g.Job)})
	c.HIncrBy(t.Context(), p+"task:"+string(id), "running", -1)
	c.HSet(t.Context(), p+"zone", "run", "another")

	// The next connection of the child reports what it holds.
	c.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes")
	for child.Ping(t.Context()) != nil {
	}
	if r := step(t, master, "2", 1); len(r.Jobs) != 0 {
		t.Errorf("a running job was handed out a second time: %+v", r.Jobs)
	}
	wantState(t, master, g.Job, jobs.Running, "")
	if r := step(t, child, "1", 1, ended(g, jobs.Succeeded)); len(r.Late) != 0 {
		t.Error("the result of the running job did not count")
	}
	redistest.Check(t, s.Config().URL, zone)
}

func TestFlushAllStopsEverybodyWhoKnewTheZone(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, late := open(t, w, "1"), open(t, w, "")
		submit(t, q, spec(), 2)
		g := one(t, step(t, q, "1", 1))
		if err := w.raw(t).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		// A newcomer makes the zone anew and finds nothing wrong; the caller that knew the old zone
		// freezes it.
		submit(t, late, spec(), 2)
		r := step(t, q, "1", 1, ended(g, jobs.Succeeded))
		if len(r.Late) != 1 {
			t.Errorf("a result for nothing counted: %+v", r)
		}
	})
}

// The caller that finds the zone missing does not know the longest lock; another one does, whose
// job runs. Nothing may be taken before that lock has ended.
func TestAForgottenZoneIsFrozenForTheLongestLockOfAll(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		first, server, child := open(t, w, ""), open(t, w, ""), open(t, w, "1")
		submit(t, first, spec(), 1)
		step(t, first, "2", 0)
		long := spec()
		long.Timeout = time.Hour
		submit(t, server, long, 2)
		var g jobs.Grant
		for _, x := range step(t, child, "1", 3).Jobs {
			if x.Timeout == time.Hour {
				g = x
			}
		}
		for _, who := range []struct {
			name  string
			hears func() error
		}{
			{"the child with the job", func() error {
				_, err := child.Stops(t.Context(), zone, []jobs.ID{g.Job})
				return err
			}},
			{"the server that submitted it", func() error {
				_, err := server.Step(t.Context(), zone, jobs.Step{})
				return err
			}},
		} {
			if err := w.raw(t).FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			step(t, first, "2", 1)
			if err := who.hears(); err != nil {
				t.Fatal(err)
			}
			r := step(t, first, "2", 1)
			if left := r.Next.Sub(r.Now); r.Status != jobs.StatusFrozen || left < 59*time.Minute {
				t.Errorf("after a word of %s: %s for %s, want an hour", who.name, r.Status, left)
			}
		}
		if _, err := child.Stops(t.Context(), zone, []jobs.ID{g.Job}); err != nil {
			t.Fatal(err)
		}
		lock := w.raw(t).HGet(t.Context(), "muster:{"+zone+"}:locks", g.Job.Host()).Val()
		if !strings.HasSuffix(lock, " "+string(g.Job)) {
			t.Errorf("the host of the job in hand is locked by %q", lock)
		}
	})
}

func TestAMissingZoneIsFrozen(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		submit(t, q, spec(), 2)
		if err := w.raw(t).Del(t.Context(), "muster:{default}:zone").Err(); err != nil {
			t.Fatal(err)
		}
		if r := step(t, q, "1", 1); r.Status != jobs.StatusFrozen {
			t.Errorf("status %s", r.Status)
		}
		if d, err := q.Depth(t.Context(), zone); err != nil || d.Frozen.IsZero() || d.Why == "" {
			t.Errorf("depth is %+v, %v", d, err)
		}
	})
}

func TestALostAnswerClaimsNoSecondJob(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	p := redistest.StartProxy(t, s.Addr)
	cfg := s.Config()
	cfg.URL = "redis://" + p.Addr + "/0"
	q := open(t, world{cfg: cfg}, "1")
	id := submit(t, q, spec(), 10)
	step(t, q, "1", 0) // now Redis knows the script, so the lost answer is of a real call
	call := jobs.Step{Node: "n1", Slot: "1", Request: "once", Want: 1}
	p.Swallow(1)
	if _, err := q.Step(t.Context(), zone, call); err == nil {
		t.Fatal("the answer was lost, yet the call succeeded")
	}
	<-p.Lost()
	g := one(t, repeat(t, q, call))
	if got, err := q.Task(t.Context(), id); err != nil || got.Running != 1 {
		t.Errorf("%d jobs run, want 1 (%v)", got.Running, err)
	}
	p.Swallow(1)
	call = jobs.Step{Node: "n1", Slot: "1", Request: "end", Results: []jobs.Result{ended(g, jobs.Succeeded)}}
	if _, err := q.Step(t.Context(), zone, call); err == nil {
		t.Fatal("the answer was lost, yet the call succeeded")
	}
	<-p.Lost()
	if r := repeat(t, q, call); len(r.Late) != 0 {
		t.Error("the repeated result is late")
	}
	wantState(t, q, g.Job, jobs.Ended, jobs.Succeeded)
}

func TestAtMaxmemoryResultsLandAndSubmitsAreRefused(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	q := open(t, world{cfg: s.Config()}, "1")
	id := submit(t, q, spec(), 3)
	g := one(t, step(t, q, "1", 1))
	if err := raw(t, s.Addr).ConfigSet(t.Context(), "maxmemory", "1mb").Err(); err != nil {
		t.Fatal(err)
	}
	// A child that is new, or reconnects, delivers too.
	fresh := open(t, world{cfg: s.Config()}, "1")
	if v, err := fresh.Checkpoint(t.Context(), zone,
		jobs.Checkpoint{Job: g.Job, Token: g.Token, Step: 1}); err != nil || v != jobs.Go {
		t.Errorf("checkpoint: %s, %v", v, err)
	}
	res := ended(g, jobs.Failed)
	res.Error, res.Output = "exit 1", []byte(strings.Repeat("x", 1000))
	step(t, fresh, "1", 0, res)
	wantState(t, q, g.Job, jobs.Ended, jobs.Failed)
	if _, err := fresh.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1", Why: "exit 0"}); err != nil {
		t.Error(err)
	}
	if c, err := q.Cancel(t.Context(), id, "alice"); err != nil || c.Ended != 2 {
		t.Errorf("cancel did %+v, %v", c, err)
	}
	task, hosts := newTask(spec(), 3)
	err := q.Submit(t.Context(), task, hosts, nil)
	if err == nil || !strings.Contains(err.Error(), "maxmemory is reached") {
		t.Errorf("submit: %v", err)
	}
	if err := q.Writes(t.Context()); !errors.Is(err, queue.ErrFull) ||
		!strings.Contains(err.Error(), "maxmemory is reached") {
		t.Errorf("who asks whether it writes hears %v", err)
	}
}

// Asking whether Redis accepts writes changes nothing, in any kind of Redis.
func TestToAskWhetherRedisWritesChangesNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		must(t, q.Writes(t.Context())) // no key is there
		id := submit(t, q, spec(), 3)
		must(t, q.Writes(t.Context()))
		if d, err := q.Depth(t.Context(), zone); err != nil || d.Queued != 3 {
			t.Errorf("the queue: %+v, %v", d, err)
		}
		if list, err := q.Tasks(t.Context(), 10); err != nil || len(list) != 1 || list[0].Task != id {
			t.Errorf("tasks: %+v, %v", list, err)
		}
	})
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	locked := redistest.StartServer(t, "--requirepass", "s3cret")
	forgetful := redistest.StartServer(t, "--appendonly", "no", "--maxmemory-policy", "allkeys-lru")
	for _, c := range []struct {
		name, url string
		unsafe    bool
		want      []string // parts of the error; none: no error
	}{
		{"no password", "redis://" + locked.Addr, false, []string{locked.Addr, "user or password refused"}},
		{"wrong password", "redis://:hunter2@" + locked.Addr, false, []string{"user or password refused"}},
		{"right password", "redis://:s3cret@" + locked.Addr, false, nil},
		{"forgets", "redis://" + forgetful.Addr, false, []string{"noeviction", "appendonly", "--unsafe-redis"}},
		{"forgets, accepted", "redis://" + forgetful.Addr, true, nil},
		{"nobody there", "redis://127.0.0.1:1", false, []string{"127.0.0.1:1", "connect", "does Redis run there?"}},
		{"bad url", "http://:hunter2@x", false, []string{"redis.url", "want redis://"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := queue.DefaultConfig()
			cfg.URL, cfg.Unsafe = c.url, c.unsafe
			q, err := queuetest.Open(t.Context(), cfg)
			if len(c.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				q.Close()
				return
			}
			for _, part := range append(c.want, "") {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error is %v, want it to say %q", err, part)
				}
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

func TestAServerThatDoesNotAnswerIsSaid(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, and nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cfg := queue.DefaultConfig()
	cfg.URL, cfg.Timeout = "redis://"+silent.Addr().String(), 200*time.Millisecond
	_, err = queuetest.Open(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "does not answer in time") {
		t.Errorf("error is %v", err)
	}
}

func TestRefusedIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t, "--appendonly", "no")
	if _, err := queuetest.Open(t.Context(), s.Config()); !errors.Is(err, queue.ErrRefused) {
		t.Errorf("error is %v", err)
	}
}

func TestStepRefusesNonsense(t *testing.T) {
	t.Parallel()
	_, cfg := redistest.StartMini(t)
	q := open(t, world{cfg: cfg}, "")
	for i, s := range []jobs.Step{
		{Node: "n 1", Slot: "1", Request: "r"},
		{Node: "n1", Slot: "1", Request: "r\n", Want: 1},
		{Node: "n1", Slot: "", Request: "r", Want: 1},
		{Node: "n1", Slot: "1", Request: "r", Want: -1},
		{Node: "n1", Slot: "1", Request: "r", Want: 100000},
		{Node: "n1", Slot: "1", Request: "r", Results: []jobs.Result{{Kind: jobs.KindEnd, Outcome: "fine"}}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if _, err := q.Step(t.Context(), zone, s); err == nil {
				t.Errorf("%+v was accepted", s)
			}
		})
	}
}

func TestTheShippedRedisConfIsAccepted(t *testing.T) {
	t.Parallel()
	path, err := filepath.Abs("../../etc/redis.conf")
	if err != nil {
		t.Fatal(err)
	}
	s := redistest.StartServerWith(t, path)
	open(t, world{cfg: s.Config()}, "")
}

func TestNodesAreListedAgainOnceRedisForgotThem(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	q := open(t, world{cfg: s.Config()}, "1")
	n := jobs.Node{ID: "n1", PID: 7, State: "running", Seen: jobs.Time{Time: time.Now()}}
	for range 2 {
		if err := q.Beat(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		if list, err := q.Nodes(t.Context()); err != nil || len(list) != 1 {
			t.Fatalf("nodes are %+v, %v", list, err)
		}
		if err := raw(t, s.Addr).FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestANodeIsNotGoneBecauseRedisIsFull(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	q, c := open(t, world{cfg: s.Config()}, "1"), raw(t, s.Addr)
	n := jobs.Node{ID: "n1", PID: 7, State: "running", Seen: jobs.Time{Time: time.Now()}}
	if err := q.Beat(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	key := c.Keys(t.Context(), "*node:n1").Val()[0]
	if err := errors.Join(c.ConfigSet(t.Context(), "maxmemory", "1").Err(),
		c.PExpire(t.Context(), key, 2*time.Second).Err()); err != nil {
		t.Fatal(err)
	}
	if err := q.Beat(t.Context(), n); err == nil || !strings.Contains(err.Error(), "maxmemory is reached") {
		t.Errorf("the beat at maxmemory: %v", err)
	}
	if left := c.PTTL(t.Context(), key).Val(); left < 10*time.Second {
		t.Errorf("the node is gone in %s", left)
	}
}

func TestNodesAreListedAlsoAfterAFailedFirstBeat(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	p := redistest.StartProxy(t, s.Addr)
	cfg := s.Config()
	cfg.URL = "redis://" + p.Addr + "/0"
	q := open(t, world{cfg: cfg}, "")
	n := jobs.Node{ID: "n1", PID: 7, State: "running", Seen: jobs.Time{Time: time.Now()}}
	p.Swallow(1)
	if err := q.Beat(t.Context(), n); err == nil {
		t.Fatal("the answer was lost, yet the beat succeeded")
	}
	for range 2 {
		if err := q.Beat(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	list, err := q.Nodes(t.Context())
	if err != nil || len(list) != 1 || list[0].PID != 7 {
		t.Errorf("nodes are %+v, %v", list, err)
	}
	if err := q.Gone(t.Context(), "n1"); err != nil {
		t.Fatal(err)
	}
	if list, err := q.Nodes(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("after its end: %+v, %v", list, err)
	}
}

// The answer to a release is lost, and the next connection reports which jobs are in hand: the
// released job must not come back to life.
func TestAJobThatWasGivenBackIsNotSaidToBeInHand(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	p := redistest.StartProxy(t, s.Addr)
	cfg := s.Config()
	cfg.URL = "redis://" + p.Addr + "/0"
	q := open(t, world{cfg: cfg}, "1")
	submit(t, q, spec(), 1)
	g := one(t, step(t, q, "1", 1))
	back := jobs.Step{Node: "n1", Slot: "1", Request: "back",
		Results: []jobs.Result{{Job: g.Job, Token: g.Token, Kind: jobs.KindBack}}}
	p.Swallow(1)
	if _, err := q.Step(t.Context(), zone, back); err == nil {
		t.Fatal("the answer was lost, yet the call succeeded")
	}
	repeat(t, q, back)
	wantState(t, q, g.Job, jobs.Queued, "")
}

// The network delivers a copy of an old call after later ones were answered.
func TestADelayedCopyOfACallChangesNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		id := submit(t, q, spec(), 10)
		c := w.raw(t)
		// The scripts know the age of a call by its stamp; the test puts the stored one back.
		held := "muster:{default}:hold:n1"
		g := one(t, step(t, q, "1", 1))
		before := c.HGet(t.Context(), held, "1").Val()
		head, rest, _ := strings.Cut(before, "\n")
		later, _, _ := strings.Cut(head, " ")
		ahead := jobs.MicrosOf(time.Now().Add(30 * time.Second)).String()
		c.HSet(t.Context(), held, "1", later+" "+ahead+"\n"+rest)
		_, err := q.Step(t.Context(), zone, jobs.Step{Node: "n1", Slot: "1", Request: "old", Want: 1})
		if err == nil || !strings.Contains(err.Error(), "a later call") {
			t.Errorf("an old step: %v", err)
		}
		_, err = q.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1", Why: "exit 0"})
		if err == nil || !strings.Contains(err.Error(), "a later call") {
			t.Errorf("an old loss: %v", err)
		}
		wantState(t, q, g.Job, jobs.Running, "")
		if got, err := q.Task(t.Context(), id); err != nil || got.Running != 1 {
			t.Errorf("%d jobs run, want 1 (%v)", got.Running, err)
		}
	})
}
