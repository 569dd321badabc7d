package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"muster/fleet"
	"muster/testkit/queuetest"
	"muster/testkit/sshtest"
)

// How much is done at a time, by all.
const (
	sshChildren = 8
	sshSlots    = 8

	// slowly is more like a real host: it takes a moment, and not the processors
	// that its clients want.
	slowly = "sleep 0.2"
)

// sshSizes are the nodes, each for 64 hosts. The target is that of the first.
var sshSizes = []nodeSize{{children: sshChildren, slots: sshSlots}, {children: 2, slots: 32}}

// overSSH compares rollouts, each from its submit to its last result, with a loop that
// does nothing but SSH. The node is idle before, so its children are started within that
// time.
func overSSH(ctx context.Context, b *bench) (rows []row, err error) {
	h, err := b.newHosts(b.size(3000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	for i, size := range sshSizes {
		part, err := b.rolloutsOf(ctx, h, size)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			part[0] = part[0].ratioAtLeast(0.9)
			part[len(part)-1] = part[len(part)-1].atMost(1)
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

// rolloutsOf is the comparison with a node of one size.
func (b *bench) rolloutsOf(ctx context.Context, h *hosts, size nodeSize) (rows []row, err error) {
	n, err := b.newNode(ctx, size, func(q *queuetest.Queue) error {
		return q.Publish(ctx, inventory, h.list, nil)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()

	all, some, parallel := h.list, h.list[:b.size(1000)], size.children*size.slots
	loop, fleet := &bill{of: "the loop", pid: os.Getpid()}, &bill{of: "the hosts", pid: h.cmd.Process.Pid}
	node := &bill{of: "master and children", pid: n.cmd.Process.Pid}
	store := &bill{of: "Redis", pid: b.redis.cmd.Process.Pid}
	visited := &bill{of: "the hosts", pid: h.cmd.Process.Pid}
	many := &bill{of: "the loops", pid: os.Getpid()}
	crowd := fmt.Sprintf("bare loop in %d processes", size.children)
	got, err := b.race(ctx, b.rounds, []contender{
		billed(h.loop("bare loop, true", all, "true", parallel), len(all), loop, fleet),
		billed(n.rollout("muster, true", all, "true"), len(all), node, store, visited),
		billed(h.loops(crowd, b.dir, "true", size, many), len(all), many),
		h.loop("bare loop, "+slowly, some, slowly, parallel),
		n.rollout("muster, "+slowly, some, slowly),
	})
	if err != nil {
		return nil, err
	}
	asked, err := b.askedFor(ctx, n, all)
	if err != nil {
		return nil, err
	}
	const unit, peer = "hosts/s", "the bare loop"
	mine := fmt.Sprintf("muster, %d children × %d slots", size.children, size.slots)
	bare := newRow(fmt.Sprintf("bare x/crypto loop, %d at a time", parallel), unit, got[0])
	slow := newRow("bare x/crypto loop, "+slowly, unit, got[3])
	rows = append(rows, newRow(mine, unit, got[1]).to(peer, bare), bare,
		newRow(crowd, unit, got[2]).to(peer, bare),
		newRow(mine+", "+slowly, unit, got[4]).to(peer, slow), slow)
	rows = append(rows, billRows("bare", loop, fleet)...)
	rows = append(rows, billRows(crowd, many)...)
	rows = append(rows, billRows(mine, node, store, visited)...)
	return append(rows, newRow("Redis calls, with submit, starts and ends of children",
		"calls a job", []float64{asked / float64(len(all))})), nil
}

// loop makes a contender that visits hosts with nothing but the SSH library.
func (h *hosts) loop(name string, list []fleet.Host, cmd string, parallel int) contender {
	return contender{name, func(ctx context.Context) (float64, error) {
		got := sshtest.BareLoop(ctx, list, h.key, parallel, cmd)
		if got.Failed > 0 {
			return 0, fmt.Errorf("%d of %d hosts failed, the first: %w", got.Failed, got.Hosts,
				got.First)
		}
		return got.Rate(), nil
	}}
}

// rollout makes a contender that runs a task on the same hosts.
func (n *node) rollout(name string, list []fleet.Host, cmd string) contender {
	return contender{name, func(ctx context.Context) (float64, error) {
		began := time.Now()
		id, err := put(ctx, n.q, cmd, namesOf(list))
		if err != nil {
			return 0, err
		}
		t, err := n.succeeded(ctx, id)
		return float64(len(list)) / t.Finished.Sub(began).Seconds(), err
	}}
}

// askedFor counts what is asked of Redis for one more rollout, all included.
func (b *bench) askedFor(ctx context.Context, n *node, list []fleet.Host) (float64, error) {
	m, err := b.redis.watch(ctx)
	if err != nil {
		return 0, err
	}
	id, err := put(ctx, n.q, "true", namesOf(list))
	err = errors.Join(err, n.busy(ctx), n.idle(ctx))
	made, stopped := m.stop(ctx)
	if err = errors.Join(err, stopped); err == nil {
		_, err = n.succeeded(ctx, id)
	}
	return float64(made(dbMuster)), err
}
