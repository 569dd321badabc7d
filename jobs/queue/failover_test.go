package queue_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// accident is a Redis that forgets the last writes.
type accident struct {
	cfg   queue.Config
	zone  string
	spare string // a zone that the accident does not touch; empty: there is none
	sever func() // from now on writes will be lost
	crash func() // the writes are lost, and Redis is back
	why   string // reason of the freeze
}

func TestWhatWasForgottenIsNotRunTwice(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T) accident{
		"sentinel": sentinelFailover, "cluster": clusterFailover, "aof": cutTail,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			judgeAccident(t, begin(t))
		})
	}
}

func sentinelFailover(t *testing.T) accident {
	s := redistest.StartSentinels(t, 1)
	return accident{cfg: s.Config(), zone: zone, why: "started anew or replaced",
		sever: func() { redistest.Sever(t, s.Servers[1]) },
		crash: func() {
			s.Servers[0].Kill()
			redistest.AwaitMaster(t, s.Servers[1])
		}}
}

func clusterFailover(t *testing.T) accident {
	c := redistest.StartCluster(t, true)
	node := 0
	if redistest.Raw(t, c.Config(), "hub").Options().Addr == c.Nodes[0].Addr {
		node = 1
	}
	return accident{cfg: c.Config(), zone: c.ZoneOn(t, node), spare: c.ZoneOn(t, node+1),
		why:   "started anew or replaced",
		sever: func() { redistest.Sever(t, c.Replicas[node]) },
		crash: func() {
			c.Nodes[node].Kill()
			redistest.AwaitMaster(t, c.Replicas[node])
		}}
}

// cutTail loses the end of the append-only file.
func cutTail(t *testing.T) accident {
	s := redistest.StartServer(t, "--appendfsync", "always", "--aof-load-truncated", "yes")
	file, size := "", int64(0)
	return accident{cfg: s.Config(), zone: zone, why: "started anew or replaced",
		sever: func() {
			files, err := filepath.Glob(filepath.Join(s.Dir, "appendonlydir", "*.incr.aof"))
			if err != nil || len(files) != 1 {
				t.Fatalf("append-only files are %v, %v", files, err)
			}
			info, err := os.Stat(files[0])
			if err != nil {
				t.Fatal(err)
			}
			file, size = files[0], info.Size()
		},
		crash: func() {
			s.Kill()
			// The cut is inside a command, so that Redis finds half of one.
			if err := os.Truncate(file, size+11); err != nil {
				t.Fatal(err)
			}
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
		}}
}

// caller makes the calls of a test in a zone of its own.
type caller struct {
	*queuetest.Queue
	zone, slot string
}

// take calls step until there is an answer: while Redis is away it returns errors only.
func (c caller) take(t *testing.T, want int, results ...jobs.Result) jobs.Reply {
	t.Helper()
	var r jobs.Reply
	s := jobs.Step{Node: "n1", Slot: c.slot, Request: fmt.Sprint("r", request.Add(1)), Results: results,
		Want: want}
	redistest.Await(t, "the queue answers", func(ctx context.Context) bool {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		var err error
		r, err = c.Step(ctx, c.zone, s)
		return err == nil
	})
	return r
}

func judgeAccident(t *testing.T, a accident) {
	open := func(zone, slot string) caller {
		cfg := a.cfg
		if slot != "" {
			cfg.Node, cfg.Slot = "n1", slot
		}
		q, err := queuetest.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { q.Close() })
		return caller{q, zone, slot}
	}
	s := spec()
	s.Timeout = 30 * time.Second
	task, names := newTask(s, 10)
	hosts := map[string][]string{a.zone: names[zone]}
	if a.spare != "" {
		hosts[a.spare] = []string{"spare1", "spare2"}
		task.Total += 2
	}
	master, child := open(a.zone, ""), open(a.zone, "1")
	if err := master.Submit(t.Context(), task, hosts, nil); err != nil {
		t.Fatal(err)
	}
	kept := one(t, child.take(t, 1))
	a.sever()
	forgotten := one(t, child.take(t, 1))
	a.crash()

	key := "muster:{" + a.zone + "}:task:" + string(task.ID)
	redistest.Await(t, "the server is back with what it kept", func(ctx context.Context) bool {
		rdb := redistest.Raw(t, a.cfg, a.zone)
		there, err := rdb.HExists(ctx, key, ":"+forgotten.Job.Host()).Result()
		if err == nil && there {
			t.Fatal("the take before the accident is there, and so the test shows nothing")
		}
		return err == nil && rdb.HExists(ctx, key, ":"+kept.Job.Host()).Val()
	})
	judgeFreeze(t, a, [2]caller{master, child}, [2]jobs.Grant{kept, forgotten})
	redistest.CheckIn(t, a.cfg, a.zone)
}

// judgeFreeze checks the freeze after an accident.
func judgeFreeze(t *testing.T, a accident, who [2]caller, what [2]jobs.Grant) {
	master, child, kept, forgotten := who[0], who[1], what[0], what[1]
	// The master comes first, and must not get the child's jobs.
	other := caller{master.Queue, a.zone, "2"}
	r := other.take(t, 1)
	if r.Status != jobs.StatusFrozen || r.Next <= r.Now {
		t.Fatalf("status %s: want frozen, the child has not said what it holds", r.Status)
	}
	if !strings.Contains(r.Why, a.why) {
		t.Errorf("frozen because %q, want %q", r.Why, a.why)
	}
	if a.spare != "" {
		spare := caller{master.Queue, a.spare, "3"}
		if r := spare.take(t, 1); len(r.Jobs) != 1 {
			t.Errorf("a zone on another node is %s", r.Status)
		}
	}
	redistest.Await(t, "the child is heard", func(ctx context.Context) bool { return child.Ping(ctx) == nil })
	began := time.Now()
	for r.Status == jobs.StatusFrozen {
		if time.Since(began) > 25*time.Second {
			t.Fatal("the zone stays frozen though the child has spoken")
		}
		<-time.After(100 * time.Millisecond)
		r = other.take(t, 1)
	}
	for _, g := range r.Jobs {
		if g.Job == kept.Job || g.Job == forgotten.Job {
			t.Errorf("%s was handed out twice, as %s", g.Job, g.Mode)
		}
	}
	r = child.take(t, 0, ended(kept, jobs.Succeeded), ended(forgotten, jobs.Succeeded))
	if len(r.Late) > 0 {
		t.Errorf("results that do not count: %v", r.Late)
	}
}
