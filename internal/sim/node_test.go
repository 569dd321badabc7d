package sim

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/jobs"
	real "muster/master"
)

// A node is a machine with a master and its children. The files of its slots outlive the master.
type node struct {
	*world
	name     string
	dir      string
	slots    int
	most     int               // jobs that a child has at a time
	children map[string]*child // the last one of each slot
	master   *master
	boots    int
}

func newNode(w *world, name string, slots int) *node {
	dir, err := os.MkdirTemp(w.dir, name)
	if err != nil {
		panic(err)
	}
	n := &node{world: w, name: name, dir: dir, slots: slots, most: 1 + w.rnd.IntN(2),
		children: map[string]*child{}}
	w.in(time.Millisecond, n.boot) // a boot clock that shows 0 shows nothing
	return n
}

// A master is the process of a real master.
type master struct {
	*runner
	at     *node
	starts int

	mu    sync.Mutex
	locks []*proc.LockFile // that its goroutines have taken; guarded by mu
}

// boot starts a master on the node.
func (n *node) boot() {
	n.boots++
	m := &master{runner: n.newRunner("", "", fmt.Sprintf("%s %d", n.name, n.boots)), at: n}
	n.master = m
	m.kills, m.dies = masterBehindCall, func() {
		if !m.dead {
			n.die(n.faults.away())
		}
	}
	gone := m.gone
	m.gone = func() {
		gone()
		m.unlock()
	}
	cfg := real.Default()
	cfg.Node, cfg.Dir, cfg.Zones, cfg.Children, cfg.Slots = n.name, n.dir, []string{zoneName}, n.slots, n.most
	cfg.Path, cfg.Beat = "muster", 7*time.Second
	machine := real.Machine{Boot: m.clock, Lock: m.lock, Start: m.startChild, Chance: m.luck}
	d := masterDoors{m}
	r, err := machine.Master(cfg, d, d, hclog.NewNullLogger())
	if err != nil {
		panic(err)
	}
	m.woken = true
	m.workers.Go(func() {
		err := r.Run(m.ctx)
		m.visit("ends", func(*visit) { m.broken("the master of %s ends: %v", n.name, err) })
	})
}

// lock takes a lock of the node, which ends with the process.
func (m *master) lock(path string) (*proc.LockFile, error) {
	select {
	case <-m.killed: // the goroutines of a dead master must not take what the next one needs
		return nil, os.ErrProcessDone
	default:
	}
	l, err := proc.Lock(path)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.locks = append(m.locks, l)
	}
	return l, err
}

func (m *master) unlock() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.locks {
		l.Close()
	}
}

// masterDoors are the ways of a real master to the queue. Their methods run in its goroutines.
type masterDoors struct{ m *master }

// Step returns jobs, and takes new ones.
func (d masterDoors) Step(ctx context.Context, _ string, s jobs.Step) (jobs.Reply, error) {
	return ask(ctx, d.m.runner, "steps "+s.Slot, func(over func() bool, then func(jobs.Reply, error)) {
		if s.Want > 0 {
			d.m.faults.masterPoint(d.m.at, masterBeforeTake)
		}
		d.m.step(s, over, func(r jobs.Reply, err error) { then(d.m.withHosts(r), err) })
	})
}

// Lose reports that the child in a slot is gone.
func (d masterDoors) Lose(ctx context.Context, _ string, l jobs.Loss) ([]jobs.ID, error) {
	return ask(ctx, d.m.runner, "loses "+l.Slot, func(over func() bool, then func([]jobs.ID, error)) {
		d.m.lose(l, over, func(err error) { then(nil, err) })
	})
}

// Held returns the jobs that each slot of a node has.
func (d masterDoors) Held(ctx context.Context, _, node string) (map[string][]jobs.ID, error) {
	return script(ctx, d.m.runner, "hold", "", func(z *zone, _ jobs.Micros) map[string][]jobs.ID {
		held := map[string][]jobs.ID{}
		for slot, h := range z.Hold[node] {
			for id := range h.Jobs {
				held[slot] = append(held[slot], id)
			}
		}
		return held
	})
}

// Beat shows the node to nobody.
func (masterDoors) Beat(context.Context, jobs.Node) error { return nil }

// Gone is for an orderly end.
func (masterDoors) Gone(context.Context, string) error { return nil }

// Wake sends no hints: a master looks by itself.
func (masterDoors) Wake(context.Context, []string) (<-chan struct{}, func(), error) {
	return nil, func() {}, nil
}

// living returns the children that are alive, by slot.
func (n *node) living() (list []*child) {
	for _, slot := range sorted(n.children) {
		if c := n.children[slot]; !c.dead {
			list = append(list, c)
		}
	}
	return list
}

// die is kill -9 of the master. Its children see it, end what they have and exit.
func (n *node) die(back time.Duration) {
	if n.master.dead {
		return
	}
	n.say("master %s: killed", n.name)
	n.master.kill()
	for _, c := range n.living() {
		c.then(c.orphaned)
	}
	n.in(back, n.boot)
}

// sleep stops all processes of the machine, for longer than locks last. They wake up in random
// order.
func (n *node) sleep(d time.Duration) {
	stop := func(p *process) { p.stop(d + n.between(0, 50*time.Millisecond)) }
	stop(n.master.process)
	for _, c := range n.living() {
		stop(c.process)
	}
}

// crash is the end of the whole machine.
func (n *node) crash(back time.Duration) {
	if n.master.dead {
		return
	}
	n.say("node %s: crashed", n.name)
	n.master.kill()
	for _, c := range n.living() {
		c.die("its node crashed")
	}
	n.in(back, n.boot)
}
