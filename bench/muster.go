package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/scripts"
	"muster/testkit/queuetest"
)

const (
	zone      = fleet.DefaultZone
	inventory = "bench" // version of the inventory
)

// open opens the queue.
func (b *bench) open(ctx context.Context) (*queuetest.Queue, error) {
	c := queue.DefaultConfig()
	c.URL = b.redis.url()
	return queuetest.Open(ctx, c)
}

// fresh opens the queue in an empty Redis.
func (b *bench) fresh(ctx context.Context) (*queuetest.Queue, error) {
	if err := b.redis.empty(ctx); err != nil {
		return nil, err
	}
	return b.open(ctx)
}

// hostNames are names of 14 characters.
func hostNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("fw-zrh1-%06d", i+1)
	}
	return names
}

// publish makes an inventory of hosts as they are in real ones, though nobody
// will go there: a take reads the host from it.
func publish(ctx context.Context, q *queuetest.Queue, names []string) error {
	const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC8G6m1vM0o7b8Yw9m0Zk0eQdJ4cP2rT5xVhN1sLfUaK"
	hosts := make([]fleet.Host, len(names))
	for i, name := range names {
		address := fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255)
		hosts[i] = fleet.Host{Name: name, Address: address, Port: 22,
			User: "root", Key: "/etc/muster/id_ed25519", HostKeys: []string{key},
			Customer: "acme", Zone: zone, Fence: fleet.FenceNone,
			Labels: map[string]string{"role": "fw", "model": "x200"}}
	}
	return q.Publish(ctx, inventory, hosts, nil)
}

// newTask is what `muster run exec --arg cmd=…` makes. It is tried once only, so
// that a failure shows.
func newTask(cmd string, hosts int) (jobs.Task, error) {
	exec, ok := scripts.Builtin("exec")
	if !ok {
		return jobs.Task{}, errors.New("there is no runbook exec any more")
	}
	values, err := exec.Bind(map[string]string{"cmd": cmd}, nil)
	if err != nil {
		return jobs.Task{}, err
	}
	frozen := exec.Freeze(values)
	action, err := json.Marshal(frozen)
	now := time.Now()
	return jobs.Task{
		ID:    jobs.NewTaskID(now, uint16(rand.Uint32())),
		Total: hosts,
		Spec: jobs.Spec{Runbook: frozen.Runbook, Operator: "bench", On: "all",
			Inventory: inventory, Created: jobs.MicrosOf(now),
			Timeout: jobs.AttemptTimeout(frozen.Steps[0].Timeout), Expire: jobs.DefaultExpire,
			Retry: jobs.Policy{Tries: 1, Delay: time.Second}, Action: action},
	}, err
}

// put submits a task for hosts.
func put(ctx context.Context, q *queuetest.Queue, cmd string, hosts []string) (jobs.TaskID, error) {
	return putIn(ctx, q, cmd, map[string][]string{zone: hosts})
}

// putIn is put for hosts by zone.
func putIn(ctx context.Context, q *queuetest.Queue, cmd string, hosts map[string][]string) (
	jobs.TaskID, error) {
	n := 0
	for _, names := range hosts {
		n += len(names)
	}
	t, err := newTask(cmd, n)
	if err != nil {
		return "", err
	}
	return t.ID, q.Submit(ctx, t, hosts, nil)
}

// A crew is the children of a node without their processes: each takes jobs,
// does nothing, says that it succeeded and takes the next ones, in one call.
type crew struct {
	takers []*taker
	slots  int // jobs a call
}

// taker is one of them, with a handle and so a connection of its own.
type taker struct {
	q     *queuetest.Queue
	node  string
	slot  string
	asked int // requests so far
}

// newCrew makes a crew that is about to take.
func (b *bench) newCrew(ctx context.Context, takers, slots int) (*crew, error) {
	c := &crew{slots: slots}
	for i := range takers {
		t := &taker{node: "bench", slot: strconv.Itoa(i + 1)}
		cfg := queue.DefaultConfig()
		cfg.URL, cfg.Pool, cfg.Node, cfg.Slot = b.redis.url(), 2, t.node, t.slot
		var err error
		if t.q, err = queuetest.OpenLazy(cfg); err != nil {
			return nil, errors.Join(err, c.close())
		}
		t.q.Prove(b.prove)
		c.takers = append(c.takers, t)
		if err := t.q.Enter(ctx, zone); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	// A sweep, so that the script is loaded.
	_, err := c.takers[0].q.Step(ctx, zone, jobs.Step{})
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *crew) close() error {
	var errs []error
	for _, t := range c.takers {
		errs = append(errs, t.q.Close())
	}
	return errors.Join(errs...)
}

// drain works until nothing is due. It is an error if it was not so many jobs.
func (c *crew) drain(ctx context.Context, want int) error {
	done := make([]int, len(c.takers))
	errs := make([]error, len(c.takers))
	var wait sync.WaitGroup
	for i, t := range c.takers {
		wait.Go(func() { done[i], errs[i] = t.drain(ctx, c.slots) })
	}
	wait.Wait()
	sum := 0
	for _, n := range done {
		sum += n
	}
	if err := errors.Join(errs...); err != nil || sum == want {
		return err
	}
	return fmt.Errorf("%d jobs were done, not %d", sum, want)
}

func (t *taker) drain(ctx context.Context, slots int) (done int, err error) {
	s := jobs.Step{Node: t.node, Slot: t.slot, Want: slots}
	ok := 0
	for n := 1; ; n++ {
		s.Request = "r" + strconv.Itoa(n)
		reply, err := t.q.Step(ctx, zone, s)
		if err != nil {
			return done, err
		}
		if len(reply.Late) > 0 {
			return done, fmt.Errorf("%d results came too late, such as that of %s",
				len(reply.Late), reply.Late[0])
		}
		done += len(s.Results)
		if len(reply.Jobs) == 0 && reply.Status != jobs.StatusMore {
			return done, nil
		}
		s.Results = s.Results[:0]
		for _, g := range reply.Jobs {
			s.Results = append(s.Results, jobs.Result{Job: g.Job, Token: g.Token,
				Kind: jobs.KindEnd, Outcome: jobs.Succeeded, ExitCode: &ok})
			if id := g.Job.Task(); !slices.Contains(s.Known, id) {
				s.Known = append(s.Known, id)
			}
		}
	}
}

// drained is a run of a crew through n jobs of one task. measure is called
// around the draining alone.
func (b *bench) drained(ctx context.Context, n, takers, slots int,
	measure func(drain func() error) error) error {
	q, err := b.fresh(ctx)
	if err != nil {
		return err
	}
	defer q.Close()
	names := hostNames(n)
	if err := publish(ctx, q, names); err != nil {
		return err
	}
	if _, err := put(ctx, q, "true", names); err != nil {
		return err
	}
	c, err := b.newCrew(ctx, takers, slots)
	if err != nil {
		return err
	}
	defer c.close()
	if err := b.redis.forget(ctx); err != nil {
		return err
	}
	return measure(func() error { return c.drain(ctx, n) })
}
