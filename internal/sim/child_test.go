package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"runtime"
	"time"

	"muster/fleet"
	"muster/jobs"
	"muster/worker"
	"muster/worker/attempt"
)

// The numbers of the masters and children.
const (
	poll       = 10 * time.Second
	heardEvery = 3 * time.Second
	zoneName   = "z"
)

// A child is the process of a real worker. All that the worker does in the world, and all that the
// world does to it, belongs to the goroutine of the world; its own goroutines come as visits.
type child struct {
	*client
	name    string
	killed  chan struct{} // closed when it is: then no visit has an answer
	orders  chan jobs.Order
	ctx     context.Context // of its worker
	cancel  context.CancelFunc
	ended   func()            // hears of its death
	reports func(jobs.Report) // hears where it stands
	lines
}

// lines hold the knowledge of a master about its child.
type lines struct {
	most     int // jobs at a time
	ready    bool
	deadline time.Duration // 0: nothing is in hand
	drained  bool
}

func newChild(m *master, s *slot) *child {
	c := &child{client: newClient(&process{world: m.world}, m.node.name, s.name),
		name:   fmt.Sprintf("%s/%s %s", m.node.name, s.name, m.request()),
		killed: make(chan struct{}), orders: make(chan jobs.Order), lines: lines{most: m.most}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.kills, c.dies = killBehindCall, func() { c.die("killed by signal 9") }
	c.gone = func() {
		close(c.killed)
		c.cancel()
		c.woken = true
	}
	return c
}

// start runs the worker, with the jobs that its master took for it.
func (c *child) start(r jobs.Reply, sent time.Duration) {
	c.hold(r.Jobs, sent)
	c.stayHeard()
	d := doors{c}
	cfg := worker.Default()
	cfg.Slots = c.most
	w, err := worker.New(cfg, worker.Doors{Queue: d, Times: d, Clock: c.clock, Log: d.log(),
		Steps: attempt.Doors{Queue: d, Kin: d, Dial: d.Dial, Chance: c.chances()}})
	if err != nil {
		panic(err)
	}
	h := jobs.Handover{Node: c.node, Slot: c.slot, Zone: zoneName, Sent: sent, Reply: c.withHosts(r)}
	report := func(r jobs.Report) {
		c.visit("reports", func(v *visit) {
			c.reports(r)
			c.answer(v, nil)
		})
	}
	c.woken = true
	c.workers.Go(func() {
		report(jobs.Report{Ready: true, Jobs: idsOf(r.Jobs)}) // as the command does, before all else
		_ = w.Run(c.ctx, h, worker.Master{Orders: c.orders, Report: report})
		c.visit("ends", func(*visit) { c.die("exit") })
	})
}

func idsOf(grants []jobs.Grant) (ids []jobs.ID) {
	for _, g := range grants {
		ids = append(ids, g.Job)
	}
	return ids
}

// chances returns numbers that depend on the child and the time alone, so that it does not matter
// which goroutine asks first.
func (c *child) chances() func() float64 {
	seed := fmt.Sprint(c.seed, " ", c.name)
	return func() float64 {
		h := fnv.New64a()
		fmt.Fprint(h, seed, c.boot())
		return float64(h.Sum64()>>11) / (1 << 53)
	}
}

// hold notes jobs that this child has from now on.
func (c *child) hold(grants []jobs.Grant, sent time.Duration) {
	for _, g := range grants {
		c.held[g.Job] = inHand{g, sent, sent + g.Timeout}
	}
}

// withHosts returns an answer of the queue with the hosts of its jobs. The leases of jobs that
// were taken at once end apart from each other, by less than anybody would notice: else it would
// not be decided which of them the worker sees first.
func (c *child) withHosts(r jobs.Reply) jobs.Reply {
	grants := make([]jobs.Grant, len(r.Jobs))
	for i, g := range r.Jobs {
		h := c.hosts[g.Job.Host()].record()
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

// reported is a report that has come to the master.
func (c *child) reported(r jobs.Report) {
	if r.Deadline > 0 || !r.Ready { // the first leaves that of the hand-over
		c.deadline = r.Deadline
	}
	if len(r.Jobs) == 0 {
		c.deadline = 0
	}
	c.ready = true
}

// deadlineOf returns the time at which the last of these jobs must have ended.
func deadlineOf(r jobs.Reply, sent time.Duration) (end time.Duration) {
	for _, g := range r.Jobs {
		end = max(end, sent+g.Timeout-jobs.Margin(g.Timeout))
	}
	return end
}

// drain is the end of its master, as the child sees it.
func (c *child) drain() {
	if !c.drained {
		c.drained, c.woken = true, true
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
	c.ended()
}

// A heed is what a question of a worker heeds while it waits for its answer.
type heed struct {
	what string
	when <-chan struct{}
	do   func(*visit) // ends the question, soon
}

// givesUp heeds the end of a context. do ends the question.
func (c *child) givesUp(ctx context.Context, do func(*visit)) heed {
	return heed{" gives up", ctx.Done(), func(v *visit) { c.after(c.latency(), func() { do(v) }) }}
}

// visit brings a question of a goroutine of the worker to the world, and waits for the answer. In a
// process that was killed there is none: the goroutine ends.
func (c *child) visit(what string, do func(*visit), heeds ...heed) any {
	v := &visit{name: c.name + " " + what, back: make(chan any, 1)}
	come := func(what string, do func(*visit)) {
		c.comes(&visit{name: v.name + what, do: func() { c.then(func() { do(v) }) }})
	}
	come("", do)
	both := [2]heed(append(heeds, heed{}, heed{})[:2])
	for {
		select {
		case <-c.killed:
			runtime.Goexit()
		case with := <-v.back:
			return with
		case <-both[0].when:
			come(both[0].what, both[0].do)
			both[0].when = nil
		case <-both[1].when:
			come(both[1].what, both[1].do)
			both[1].when = nil
		}
	}
}
