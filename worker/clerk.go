package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"muster/jobs"
	"muster/worker/attempt"
	"muster/worker/verdict"
)

// pollMin is the least time after which a free slot asks again for work.
const pollMin = 100 * time.Millisecond

// A clerk keeps the books of a worker: which jobs are in hand, what is to be
// said about others, and the call to the queue. All of it belongs to one
// goroutine; attempts and calls run in others and send it what came out.
type clerk struct {
	*Worker
	calls    caller
	specs    specs
	orderer  orderer
	reporter *reporter
	orders   <-chan jobs.Order

	inHand  map[jobs.Token]*attempt.Attempt
	results []jobs.Result // not part of a call yet
	done    int           // jobs that ended
	next    jobs.Micros   // when there is work again, as the queue last said

	mode    mode
	idleTil time.Duration // nothing is due before, on the boot clock; 0: more may be due
	stopTil time.Duration // after a stop: time for the last words

	lines lines
}

// lines are how the other goroutines reach the clerk.
type lines struct {
	finished chan attempt.Ending
	moved    chan struct{} // a deadline was moved on
	stops    stops
	voices   voices
	gone     chan struct{} // closed when the clerk does not listen any more
	attempts sync.WaitGroup
	stuck    bool // one of the attempts does not end: nobody waits for it
}

// mode is whether a clerk takes jobs.
type mode int

const (
	taking   mode = iota
	draining      // ends what is in hand
	stopping      // what is in hand is being stopped
)

func newClerk(w *Worker, h jobs.Handover, m Master) *clerk {
	return &clerk{
		Worker: w,
		calls: caller{
			Worker: w, node: h.Node, slot: h.Slot, zone: h.Zone, prefix: requestPrefix(),
			answers: make(chan answer, 1),
		},
		orderer:  newOrderer(w, h.Zone),
		reporter: newReporter(m.Report),
		orders:   m.Orders,
		inHand:   map[jobs.Token]*attempt.Attempt{},
		lines: lines{
			finished: make(chan attempt.Ending),
			moved:    make(chan struct{}, 1),
			stops:    newStops(),
			voices:   newVoices(),
			gone:     make(chan struct{}),
		},
	}
}

// work is the life of the clerk. Each turn looks at everything that is due, so
// it does not matter what woke it.
func (c *clerk) work(ctx context.Context, h jobs.Handover) error {
	defer c.leave()
	c.accept(ctx, h.Reply, h.Sent)
	c.reporter.tell(c.report(true))
	stop := ctx.Done()
	for {
		c.dropStuck()
		c.calls.resend(ctx)
		c.ask(ctx)
		c.askForStops(ctx)
		c.speak(ctx)
		c.reporter.tell(c.report(false))
		if c.mode != taking {
			c.orderer.cancel()
		}
		if c.over() {
			return nil
		}
		if err := c.hopeless(); err != nil {
			return err
		}

		alarm := time.NewTimer(c.sleep())
		select {
		case e := <-c.lines.finished:
			c.ended(e)
		case a := <-c.calls.answers:
			c.answered(ctx, a)
		case a := <-c.lines.stops.answers:
			c.halt(a)
		case a := <-c.lines.voices.answers:
			c.spoke(a)
		case o, ok := <-c.orders:
			c.ordered(o, ok)
		case <-stop:
			stop = nil
			c.mode = stopping
			c.stopTil = c.Clock() + c.cfg.LastWords
		case <-c.lines.moved:
		case <-c.orderer.over:
			c.orderer.ended()
		case <-alarm.C:
		}
		alarm.Stop()
	}
}

// leave waits for the other goroutines, but not for attempts that are stuck.
func (c *clerk) leave() {
	close(c.lines.gone)
	c.calls.tries.Wait()
	c.lines.stops.end()
	c.lines.voices.end()
	c.orderer.cancel()
	c.orderer.walking.Wait()
	if !c.lines.stuck && len(c.inHand) == 0 {
		c.lines.attempts.Wait()
	}
}

// ask starts a call if there is something to say, or to ask for.
func (c *clerk) ask(ctx context.Context) {
	if c.idleTil != 0 && c.Clock() >= c.idleTil {
		c.idleTil = 0
	}
	if c.calls.call != nil {
		return
	}
	want := c.free()
	if len(c.results) == 0 && (want == 0 || c.idleTil != 0) {
		return
	}
	c.calls.start(ctx, jobs.Step{
		Node:    c.calls.node,
		Slot:    c.calls.slot,
		Results: c.results,
		Want:    want,
		Known:   c.specs.known(),
	})
	c.results = nil
}

// free is how many jobs the clerk would take.
func (c *clerk) free() int {
	if c.mode != taking {
		return 0
	}
	return c.cfg.Slots - len(c.inHand)
}

// answered looks at what a try of the call brought.
func (c *clerk) answered(ctx context.Context, a answer) {
	if a.err != nil {
		c.calls.failed(a.err)
		return
	}
	call := c.calls.answered()
	for _, r := range call.step.Results {
		late := slices.Contains(a.reply.Late, r.Job)
		if late {
			c.Log.Warn("the result came too late and does not count", "job", r.Job,
				"kind", r.Kind, "outcome", r.Outcome, "error", r.Error)
		}
		if r.Kind == jobs.KindEnd && !late {
			c.done++
		}
	}
	c.accept(ctx, a.reply, call.sent)
}

// accept starts the jobs of an answer. sent is when their time began.
func (c *clerk) accept(ctx context.Context, r jobs.Reply, sent time.Duration) {
	c.specs.add(r.Specs)
	for _, g := range r.Jobs {
		looks := g.Mode.Looks() // nothing is held, and nobody waits for a result
		if !looks {
			c.calls.lockedTil(sent+g.Timeout, g.Timeout)
		}
		plan, ok := c.specs.get(g.Job.Task())
		switch {
		case looks && (!ok || c.mode != taking || ctx.Err() != nil): // it is handed out again
		case !ok:
			c.Log.Error("the queue handed out a job without the spec of its task", "job", g.Job)
			c.results = append(c.results, verdict.Puzzled(g, jobs.DefaultPolicy(),
				"the job came without the spec of its task: a mistake in muster"))
		case g.Mode != jobs.ModeLost && (c.mode != taking || ctx.Err() != nil):
			c.results = append(c.results, verdict.Untouched(g, "the worker takes nothing new"))
		default:
			c.begin(ctx, c.env.New(c.calls.zone, g, plan), sent)
		}
	}
	c.specs.trim()
	if c.mode == taking {
		c.orderer.look(ctx, r)
	}

	if r.Why != "" {
		c.Log.Warn("nothing is handed out", "zone", c.calls.zone, "why", r.Why,
			"left", max(r.Next.Sub(r.Now), 0).Round(time.Second))
	}
	c.next = r.Next
	c.idleTil = 0
	switch r.Status {
	case jobs.StatusNext, jobs.StatusFrozen, jobs.StatusHalted:
		c.idleTil = c.Clock() + nap(r, c.cfg.Poll)
	}
}

// nap is how long nothing is due, as far as is known. Both times are Redis'.
func nap(r jobs.Reply, most time.Duration) time.Duration {
	if r.Next == 0 {
		return most
	}
	return min(max(r.Next.Sub(r.Now), pollMin), most)
}

// begin starts an attempt.
func (c *clerk) begin(ctx context.Context, a *attempt.Attempt, sent time.Duration) {
	ctx = a.Begin(ctx, sent, c.lines.moved)
	c.inHand[a.Grant().Token] = a
	c.lines.attempts.Go(func() {
		defer a.Close()
		e := a.Run(ctx)
		select {
		case c.lines.finished <- e:
		case <-c.lines.gone:
		}
	})
}

// ended takes the result of an attempt. Of one that was given up before, the
// result has been said.
func (c *clerk) ended(e attempt.Ending) {
	a := c.inHand[e.Token]
	if a == nil {
		return
	}
	t := a.Grant().Timeout
	c.calls.lockedTil(a.Until()+jobs.Margin(t), t) // a checkpoint may have moved it
	delete(c.inHand, e.Token)
	if !e.Stale {
		c.results = append(c.results, e.Result)
	}
}

// dropStuck gives up attempts that do not stop at their deadline. A process in
// which that can happen is not sound: it takes nothing more and so comes to its end.
func (c *clerk) dropStuck() {
	for token, a := range c.inHand {
		if c.Clock() < a.MustEnd() || a.Expire() {
			continue
		}
		c.Log.Error("the job does not stop at its deadline, this worker takes no more",
			"job", a.Grant().Job, "host", a.Grant().Job.Host())
		c.calls.lockedTil(a.Until()+jobs.Margin(a.Grant().Timeout), a.Grant().Timeout)
		delete(c.inHand, token)
		c.lines.stuck = true
		c.mode = max(c.mode, draining)
		if !a.Grant().Mode.Looks() {
			c.results = append(c.results, verdict.Stuck(a.Grant()))
		}
	}
}

// ordered obeys the master. Without a master there is nobody who would start
// more children or stop this one: it ends what it has in hand.
func (c *clerk) ordered(o jobs.Order, ok bool) {
	switch {
	case !ok:
		c.orders = nil
		c.Log.Warn("the master is gone, the jobs in hand will be ended", "jobs", len(c.inHand))
	case o != jobs.OrderDrain:
		c.Log.Warn("the master says what is not known here", "order", string(o))
		return
	}
	c.mode = max(c.mode, draining)
}

// over tells that there is nothing left to do.
func (c *clerk) over() bool {
	if len(c.inHand) > 0 || len(c.results) > 0 || c.calls.call != nil || c.orderer.stop != nil {
		return false
	}
	return c.mode != taking || c.idleTil != 0
}

// hopeless tells why it makes no sense to wait on for an answer: nothing that is
// known here would get lost, the time after a stop is over, or nobody wants to know
// any more.
func (c *clerk) hopeless() error {
	now, call := c.Clock(), c.calls.call
	if c.mode == stopping && now >= c.stopTil {
		return fmt.Errorf("stopped, and could not report %d jobs within %s", len(c.jobs()),
			c.cfg.LastWords)
	}
	if call == nil || call.tries == 0 || now-call.sent < c.cfg.GiveUp {
		return nil
	}
	if len(c.jobs()) > 0 {
		return c.forsaken()
	}
	return fmt.Errorf("no answer from the queue in zone %s for %s (%d tries)", c.calls.zone,
		c.cfg.GiveUp, call.tries)
}

// sleep is the time to the next moment at which something is due by the clock.
func (c *clerk) sleep() time.Duration {
	at := c.Clock() + c.cfg.Poll
	sooner := func(t time.Duration) {
		if t != 0 {
			at = min(at, t)
		}
	}
	if c.calls.call != nil {
		sooner(c.calls.call.next)
	}
	sooner(c.idleTil)
	sooner(c.stopTil)
	sooner(c.stopsAt())
	sooner(c.speakAt())
	for _, a := range c.inHand {
		sooner(a.MustEnd())
	}
	return max(at-c.Clock(), 0)
}

// jobs lists what is in hand: running, or ended and not reported yet.
func (c *clerk) jobs() []jobs.ID {
	list := []jobs.ID{}
	for _, a := range c.inHand {
		list = append(list, a.Grant().Job)
	}
	for _, r := range c.results {
		list = append(list, r.Job)
	}
	if c.calls.call != nil {
		for _, r := range c.calls.call.step.Results {
			list = append(list, r.Job)
		}
	}
	slices.Sort(list)
	return list
}

// report is where the worker stands. Its deadline is that of what runs: a result
// that waits for Redis can wait for ever, and must not get the worker killed. Nor
// must a job that came too late and is on its way back.
func (c *clerk) report(ready bool) jobs.Report {
	r := jobs.Report{Ready: ready, Jobs: c.jobs(), Done: c.done, Doubt: c.env.Agreed.Why()}
	for _, a := range c.inHand {
		if !a.TooLate() {
			r.Deadline = max(r.Deadline, a.Until())
		}
	}
	return r
}
