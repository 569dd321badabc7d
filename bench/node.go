package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"muster/jobs"
	"muster/testkit/queuetest"
)

// node is a master as it is shipped, with the queue that it works on.
type node struct {
	*process
	q *queuetest.Queue
}

// look is how often is looked whether something has changed.
const look = 50 * time.Millisecond

// nodeSize is how much a node does at a time, and when it reorders its queue.
type nodeSize struct {
	children, slots int
	after           time.Duration // overload.after; 0: the default
	linger          time.Duration // of a child without jobs
}

// newNode starts a master in an empty Redis. prepare is called before.
func (b *bench) newNode(ctx context.Context, size nodeSize,
	prepare func(*queuetest.Queue) error) (*node, error) {
	if _, err := os.Stat(b.muster); err != nil {
		return nil, fmt.Errorf("%w: make build makes it", err)
	}
	q, err := b.fresh(ctx)
	if err != nil {
		return nil, err
	}
	n := &node{q: q}
	if err = prepare(q); err == nil {
		n.process, err = b.startMaster(size)
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	err = n.until(ctx, look, func() (bool, error) {
		nodes, err := q.Nodes(ctx)
		return len(nodes) > 0, err
	})
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	return n, nil
}

func (b *bench) startMaster(size nodeSize) (*process, error) {
	if size.after == 0 {
		size.after = jobs.DefaultOverload().After
	}
	config := filepath.Join(b.dir, "muster.yaml")
	text := fmt.Sprintf(`redis: {url: %q}
master: {children: %d, slots: %d, drain: 5s, linger: %s}
node: {name: bench, dir: %q}
overload: {after: %s}
log: {level: warn}
`, b.redis.url(), size.children, size.slots, size.linger, filepath.Join(b.dir, "node"), size.after)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return b.start("master", b.muster, "master", "--config", config)
}

func (n *node) close() error { return errors.Join(n.stop(), n.q.Close()) }

// busy waits until the node has children, idle until it has none. They look at
// the processes and not into Redis, whose calls may be counted.
func (n *node) busy(ctx context.Context) error {
	return n.untilChildren(ctx, func(count int) bool { return count > 0 })
}

func (n *node) idle(ctx context.Context) error {
	return n.untilChildren(ctx, func(count int) bool { return count == 0 })
}

func (n *node) untilChildren(ctx context.Context, so func(count int) bool) error {
	return n.until(ctx, look, func() (bool, error) {
		pids, err := n.children()
		return so(len(pids)), err
	})
}

// ended waits until a task has ended and its children, too.
func (n *node) ended(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	t, err := n.over(ctx, id)
	return t, errors.Join(err, n.idle(ctx))
}

// over waits until a task has ended.
func (n *node) over(ctx context.Context, id jobs.TaskID) (t jobs.TaskInfo, err error) {
	err = n.until(ctx, look, func() (bool, error) {
		t, err = n.q.Task(ctx, id)
		return t.State == jobs.TaskEnded, err
	})
	return t, err
}

// succeeded waits until a task has ended. It is an error if one of its jobs did
// not succeed.
func (n *node) succeeded(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	t, err := n.ended(ctx, id)
	if err == nil && t.Outcomes[jobs.Succeeded] != t.Total {
		err = n.explain(fmt.Errorf("of %d hosts: %s", t.Total, outcomes(t.Outcomes)))
	}
	return t, err
}
