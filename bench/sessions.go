package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster/jobs"
	"muster/testkit/queuetest"
)

// sessionMost is what an open session may take of a node's memory, in kB.
const sessionMost = 90

// sessions tells what a node costs in memory while so many hosts are at work: its
// master and all its children together.
func sessions(ctx context.Context, b *bench) ([]row, error) {
	const slots = 64
	var rows []row
	for _, open := range []int{1000, 5000} {
		open = b.size(open)
		bytes, err := b.withOpen(ctx, open, nodeSize{children: (open + slots - 1) / slots, slots: slots})
		if err != nil {
			return nil, fmt.Errorf("%d sessions: %w", open, err)
		}
		rows = append(rows, newRow(fmt.Sprintf("%d open sessions, each", open), "kB",
			[]float64{bytes / 1e3 / float64(open)}).atMost(sessionMost))
	}
	return rows, nil
}

// withOpen is the private memory of a node that has so many sessions open.
func (b *bench) withOpen(ctx context.Context, open int, size nodeSize) (bytes float64, err error) {
	h, err := b.newHosts(open)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	n, err := b.newNode(ctx, size, func(q *queuetest.Queue) error {
		return q.Publish(ctx, inventory, h.list, nil)
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, n.close()) }()

	// By and by: 5,000 logins at once would run into their deadlines on two processors.
	var tasks []jobs.TaskID
	for some := range slices.Chunk(namesOf(h.list), 500) {
		id, err := put(ctx, n.q, "sleep 600", some) // and be cancelled then
		if err == nil {
			err = n.until(ctx, look, func() (bool, error) {
				t, err := n.q.Task(ctx, id)
				return t.Running == len(some), err
			})
		}
		if err != nil {
			return 0, err
		}
		tasks = append(tasks, id)
	}
	err = n.until(ctx, look, func() (bool, error) {
		sockets, err := n.sockets()
		return sockets >= open+size.children, err
	})
	if err != nil {
		return 0, err
	}
	time.Sleep(5 * time.Second) // what was needed for the logins only is given back
	pids, err := n.children()
	if err != nil {
		return 0, err
	}
	for _, pid := range append(pids, n.cmd.Process.Pid) {
		own, err := privateMemory(pid)
		if err != nil {
			return 0, err
		}
		bytes += own
	}
	for _, id := range tasks {
		if _, err := n.q.Cancel(ctx, id, "measured"); err != nil {
			return 0, err
		}
	}
	return bytes, n.idle(ctx)
}

// sockets counts those of the children: one for each host that they are connected to,
// and two or three for their master and Redis.
func (n *node) sockets() (int, error) {
	pids, err := n.children()
	if err != nil {
		return 0, err
	}
	count := 0
	for _, pid := range pids {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			return 0, err
		}
		for _, f := range files {
			if to, err := os.Readlink(f); err == nil && strings.HasPrefix(to, "socket:") {
				count++
			}
		}
	}
	return count, nil
}
