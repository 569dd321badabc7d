package queue_test

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/redistest"
)

// A job that too few replicas have does not run, and the submit says so. The replica is stopped, so
// that it has nothing and its master does not know why.
func TestNothingRunsThatTooFewReplicasHave(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	host, port, _ := net.SplitHostPort(s.Addr)
	replica := redistest.StartServer(t, "--replicaof", host+" "+port)
	redistest.AwaitReplica(t, replica)
	cfg := s.Config()
	cfg.Durable, cfg.Timeout = 1, 8*time.Second // the replica has a quarter of it
	q := open(t, world{cfg: cfg}, "1")
	if d := q.Durable(); !strings.Contains(d, "1 replica") {
		t.Errorf("durable is said to be %q", d)
	}
	submit(t, q, spec(), 1200)
	first := one(t, step(t, q, "1", 1))

	replica.Process().Signal(syscall.SIGSTOP)
	defer replica.Process().Signal(syscall.SIGCONT)
	r := step(t, q, "1", 2, ended(first, jobs.Succeeded))
	if len(r.Jobs) != 0 || r.Status != jobs.StatusNext || r.Next <= r.Now ||
		!strings.Contains(r.Why, "only 0 of 1 replicas") {
		t.Fatalf("with the replica stopped: %+v", r)
	}
	wantState(t, q, first.Job, jobs.Ended, jobs.Succeeded)
	for i := range 3 {
		wantState(t, q, jobs.NewID(first.Job.Task(), fmt.Sprintf("fw%04d", i+1)), jobs.Queued, "")
	}
	// A repetition does not count as durable because it has nothing to write.
	task, hosts := newTask(spec(), 700)
	for range 2 {
		err := q.Submit(t.Context(), task, hosts, nil)
		if !errors.Is(err, queue.ErrFewer) || !strings.Contains(err.Error(), "none runs") {
			t.Errorf("submit: %v", err)
		}
	}
	if info, err := q.Task(t.Context(), task.ID); err == nil && info.State != jobs.TaskSubmitting {
		t.Errorf("the task is %s", info.State)
	}

	replica.Process().Signal(syscall.SIGCONT)
	redistest.AwaitReplica(t, replica)
	if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
		t.Error(err)
	}
	one(t, step(t, q, "1", 1))
	redistest.CheckIn(t, cfg, zone)
}

// The submit reports a commit that too few replicas have: the task runs, but a failover may forget
// the commit until the same submit is accepted.
func TestACommitThatTooFewReplicasHave(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	host, port, _ := net.SplitHostPort(s.Addr)
	replica := redistest.StartServer(t, "--replicaof", host+" "+port)
	redistest.AwaitReplica(t, replica)
	cfg := s.Config()
	cfg.Durable, cfg.Timeout = 1, 8*time.Second // the replica has a quarter of it
	q := open(t, world{cfg: cfg}, "1")
	task, hosts := newTask(spec(), 700)
	defer replica.Process().Signal(syscall.SIGCONT)
	err := q.Submit(t.Context(), task, hosts, func(n int) {
		if n == 700 { // all jobs are put, and on the replica
			replica.Process().Signal(syscall.SIGSTOP)
		}
	})
	if !errors.Is(err, queue.ErrFewer) || !strings.Contains(err.Error(), "is committed and runs") {
		t.Fatalf("submit: %v", err)
	}
	if info, err := q.Task(t.Context(), task.ID); err != nil || info.State != jobs.TaskQueued {
		t.Errorf("the task is %s, %v", info.State, err)
	}
	// The task cannot run yet: a take is not on the replica either.
	if r := step(t, q, "1", 1); len(r.Jobs) != 0 || !strings.Contains(r.Why, "only 0 of 1 replicas") {
		t.Errorf("with the replica stopped: %+v", r)
	}
	if err := q.Submit(t.Context(), task, hosts, nil); !errors.Is(err, queue.ErrFewer) {
		t.Errorf("the same submit, with the replica stopped: %v", err)
	}
	replica.Process().Signal(syscall.SIGCONT)
	redistest.AwaitReplica(t, replica)
	if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
		t.Errorf("the same submit, with the replica back: %v", err)
	}
	one(t, step(t, q, "1", 1))
	if info, err := q.Task(t.Context(), task.ID); err != nil || info.Total != 700 {
		t.Errorf("the task is %+v, %v", info, err)
	}
	redistest.CheckIn(t, cfg, zone)
}

// With replicas all scripts are called in another way, and must do the same.
func TestTheQueueIsTheSameWithReplicas(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t, 1)
	cfg := s.Config()
	cfg.Durable = 1
	q := open(t, world{cfg: cfg}, "1")
	id := submit(t, q, spec(), 10)
	for r := step(t, q, "1", 3); len(r.Jobs) > 0; {
		var results []jobs.Result
		for _, g := range r.Jobs {
			results = append(results, ended(g, jobs.Succeeded))
		}
		r = step(t, q, "1", 3, results...)
	}
	info, err := q.Task(t.Context(), id)
	if err != nil || info.State != jobs.TaskEnded || info.Outcomes[jobs.Succeeded] != 10 {
		t.Errorf("task is %+v, %v", info, err)
	}
	// A server that has just started knows no scripts and no functions.
	raw(t, s.Servers[0].Addr).ScriptFlush(t.Context())
	raw(t, s.Servers[0].Addr).FunctionFlush(t.Context())
	submit(t, q, spec(), 1200)
	one(t, step(t, q, "1", 1))
	redistest.CheckIn(t, cfg, zone)
}
