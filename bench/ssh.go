package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/fleet"
	"muster/internal/fakefleet"
	"muster/jobs/queue"
)

// How much is done at a time, by both.
const (
	sshChildren = 8
	sshSlots    = 8

	// slowly is more like a real host: it takes a moment, and not the processors
	// that its clients want.
	slowly = "sleep 0.2"
)

// overSSH compares a rollout, from its submit to its last result, with a loop
// that does nothing but SSH. The node is idle before, so its children are
// started within that time.
func overSSH(ctx context.Context, b *bench) (rows []row, err error) {
	h, err := b.newHosts(b.size(3000))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.stop()) }()
	n, err := b.newNode(ctx, nodeSize{children: sshChildren, slots: sshSlots}, func(q *queue.Queue) error {
		return q.Publish(ctx, inventory, h.list, nil)
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()

	all, some := h.list, h.list[:b.size(1000)]
	got, err := b.race(ctx, b.rounds, []contender{
		h.loop("bare loop, true", all, "true", sshChildren*sshSlots),
		n.rollout("muster, true", all, "true"),
		h.loop("bare loop, "+slowly, some, slowly, sshChildren*sshSlots),
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
	mine := fmt.Sprintf("muster, %d children × %d slots", sshChildren, sshSlots)
	bare, slow := newRow("bare x/crypto loop, 64 at a time", unit, got[0]),
		newRow("bare x/crypto loop, "+slowly, unit, got[2])
	return []row{
		newRow(mine, unit, got[1]).to(peer, bare).ratioAtLeast(0.9),
		bare,
		newRow(mine+", "+slowly, unit, got[3]).to(peer, slow),
		slow,
		newRow("Redis calls, with submit, starts and ends of children", "calls a job",
			[]float64{asked / float64(len(all))}).atMost(1),
	}, nil
}

// loop makes a contender that visits hosts with nothing but the SSH library.
func (h *hosts) loop(name string, list []fleet.Host, cmd string, parallel int) contender {
	return contender{name, func(ctx context.Context) (float64, error) {
		got := fakefleet.BareLoop(ctx, list, h.key, parallel, cmd)
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
