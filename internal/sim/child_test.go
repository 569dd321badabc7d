package sim

import (
	"fmt"
	"io"
	"os"
	"time"

	"muster/fleet"
	"muster/internal/proc"
	"muster/jobs"
	"muster/worker"
	"muster/worker/attempt"
)

const (
	heardEvery = 3 * time.Second
	zoneName   = "z"
)

// A child is the process of a real worker.
type child struct {
	*runner
	orders chan jobs.Order // has room for all that a master says
	slots  int             // jobs at a time
	alone  bool            // its master is gone
	begun  bool            // it has the hand-over
	lock   *os.File        // of its slot
	ears
}

// ears are the goroutines of the master that wait for news of a child.
type ears struct {
	master *master
	inbox  []jobs.Report // that nobody has heard
	hears  *visit
	waits  *visit // for its end
	exit   proc.Exit
}

func newChild(m *master, slot string, lock *os.File) *child {
	m.starts++
	name := fmt.Sprintf("%s/%s %d.%d", m.at.name, slot, m.at.boots, m.starts)
	c := &child{runner: m.newRunner(m.at.name, slot, name), orders: make(chan jobs.Order, 4), slots: m.at.most,
		lock: lock, ears: ears{master: m}}
	c.kills, c.dies = killBehindCall, func() { c.die("killed by signal 9") }
	return c
}

// lingers returns how long idle children of a seed wait for an order. Most seeds have none, so that
// children begin and end as often as ever.
func lingers(seed uint64) time.Duration {
	if seed%4 == 0 {
		return 4 * time.Second
	}
	return 0
}

// start runs the worker, with the jobs that its master took for it.
func (c *child) start(h jobs.Handover) {
	for _, g := range h.Reply.Jobs {
		c.hold(g, h.Sent)
	}
	c.inherit(h.Reply.Epoch)
	c.stayHeard()
	d := doors{c}
	cfg := worker.Default()
	cfg.Slots, cfg.Linger = c.slots, lingers(c.seed)
	w, err := worker.New(cfg, worker.Doors{Queue: d, Times: d, Clock: c.clock, Log: d.log(),
		Steps: attempt.Doors{Queue: d, Kin: d, Dial: d.Dial, Chance: c.luck}})
	if err != nil {
		panic(err)
	}
	report := func(r jobs.Report) {
		c.visit("reports", func(v *visit) {
			c.reports(r)
			c.answer(v, nil)
		})
	}
	c.woken, c.begun = true, true
	c.workers.Go(func() {
		report(jobs.Report{Ready: true, Jobs: idsOf(h.Reply.Jobs)}) // as the command does, before all else
		err := w.Run(c.ctx, h, worker.Master{Orders: c.orders, Report: report})
		c.visit("ends", func(*visit) {
			if err != nil {
				c.exit.Code = 1
			}
			c.die("exit")
		})
	})
}

func idsOf(grants []jobs.Grant) (ids []jobs.ID) {
	for _, g := range grants {
		ids = append(ids, g.Job)
	}
	return ids
}

// withHosts returns an answer of the queue with the hosts of its jobs. The leases of jobs that
// were taken at once end apart from each other, by less than anybody would notice: else it would
// not be decided which of them the worker sees first.
func (w *world) withHosts(r jobs.Reply) jobs.Reply {
	grants := make([]jobs.Grant, len(r.Jobs))
	for i, g := range r.Jobs {
		h := w.hosts[g.Job.Host()].record()
		g.Host, g.Timeout = &h, g.Timeout-time.Duration(i)*time.Microsecond
		grants[i] = g
	}
	r.Jobs = grants
	return r
}

func (h *host) record() fleet.Host {
	return fleet.Host{Name: h.name, Address: "192.0.2.1", Port: 22, Zone: zoneName, Group: h.group,
		Customer: customer, Fence: fleet.FenceNone}
}

// stayHeard registers the child, and sees within seconds that Redis was restarted.
func (c *child) stayHeard() {
	ping := call{kind: "heard", do: func(*zone, jobs.Micros) any { return nil }}
	c.script(ping, nil, func(any, error) {})
	c.after(heardEvery, c.stayHeard)
}

// reports brings a report to the master.
func (c *child) reports(r jobs.Report) {
	c.inbox = append(c.inbox, r)
	c.master.then(c.listen)
}

// listen lets the master hear what the child has reported, and its end.
func (c *child) listen() {
	switch v := c.hears; {
	case v == nil:
	case len(c.inbox) > 0:
		c.hears = nil
		c.answer(v, c.inbox[0])
		c.inbox = c.inbox[1:]
	case c.dead:
		c.hears = nil
		c.answer(v, io.EOF)
	}
}

// orphaned is the end of its master, as the child sees it.
func (c *child) orphaned() {
	switch {
	case c.alone:
	case !c.begun: // there is no hand-over to come
		c.die("exit")
	default:
		c.alone, c.woken = true, true
		close(c.orders)
	}
}

// die ends the child, by itself or by kill -9.
func (c *child) die(why string) {
	if c.dead {
		return
	}
	c.world.say("child %s/%s: %s", c.node, c.slot, why)
	c.kill()
	c.lock.Close()
	if why != "exit" {
		c.exit.Signal = 9
	}
	c.master.then(func() {
		if c.waits != nil {
			c.answer(c.waits, c.exit)
		}
		c.listen()
	})
}
