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

// A clerk keeps the books of a worker: the jobs in hand, the results that the queue does not have
// yet, and the call to the queue. All of this belongs to one goroutine. Attempts and calls run in
// other goroutines, and send their results to the clerk.
type clerk struct {
	*Worker
	calls     caller
	specs     specs
	reorderer reorderer
	reporter  *reporter
	orders    <-chan jobs.Order

	inHand  map[jobs.Token]*attempt.Attempt
	results []jobs.Result // not part of a call yet
	done    int           // the number of jobs that ended

	mode      mode
	idle      idleness
	stopUntil time.Duration // after a stop: the end of the time for the last report

	lines lines
}

// lines connect the other goroutines with the clerk.
type lines struct {
	finished chan attempt.Ending
	moved    chan struct{} // gets a value when a deadline moves
	stops    stops
	voices   voices
	gone     chan struct{} // closed when the clerk receives nothing more
	attempts sync.WaitGroup
	stuck    bool // one of the attempts does not end, and the clerk does not wait for it
}

// mode is whether a clerk takes jobs.
type mode int

const (
	taking   mode = iota
	draining      // the jobs in hand go to their end
	stopping      // the jobs in hand are being stopped
)

func newClerk(w *Worker, h jobs.Handover, m Master) *clerk {
	return &clerk{
		Worker: w,
		calls: caller{
			Worker: w, node: h.Node, slot: h.Slot, zone: h.Zone, prefix: requestPrefix(),
			answers: make(chan answer, 1),
		},
		reorderer: newReorderer(w, h.Zone),
		reporter:  newReporter(m.Report),
		orders:    m.Orders,
		inHand:    map[jobs.Token]*attempt.Attempt{},
		lines: lines{
			finished: make(chan attempt.Ending),
			moved:    make(chan struct{}, 1),
			stops:    newStops(),
			voices:   newVoices(),
			gone:     make(chan struct{}),
		},
	}
}

// work runs the clerk until nothing is left to do. Each turn looks at everything that is due,
// whatever woke it.
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
		c.linger()
		c.reporter.tell(c.report(false))
		if c.mode != taking {
			c.reorderer.cancel()
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
			c.stopCancelled(a)
		case a := <-c.lines.voices.answers:
			c.spoke(a)
		case o, ok := <-c.orders:
			c.ordered(o, ok)
		case <-stop:
			stop = nil
			c.mode = stopping
			c.stopUntil = c.Clock() + c.cfg.LastWords
		case <-c.lines.moved:
		case <-c.reorderer.over:
			c.reorderer.ended()
		case <-alarm.C:
		}
		alarm.Stop()
	}
}

// leave waits for the other goroutines, but not for stuck attempts.
func (c *clerk) leave() {
	close(c.lines.gone)
	c.calls.tries.Wait()
	c.lines.stops.end()
	c.lines.voices.end()
	c.reorderer.cancel()
	c.reorderer.walking.Wait()
	if !c.lines.stuck && len(c.inHand) == 0 {
		c.lines.attempts.Wait()
	}
}

// ask starts a call if there are results to report, or slots to fill.
func (c *clerk) ask(ctx context.Context) {
	if c.idle.due != 0 && c.Clock() >= c.idle.due && c.idle.until == 0 {
		c.idle.due = 0
	}
	if c.calls.call != nil {
		return
	}
	want := c.free()
	if len(c.results) == 0 && (want == 0 || c.idle.due != 0) {
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

// free returns the number of jobs that the clerk would take.
func (c *clerk) free() int {
	if c.mode != taking {
		return 0
	}
	return c.cfg.Slots - len(c.inHand)
}

// answered takes the answer to a try of the call.
func (c *clerk) answered(ctx context.Context, a answer) {
	if a.err != nil {
		c.calls.failed(a.err)
		return
	}
	call := c.calls.answered()
	c.idle.answered()
	for _, r := range call.step.Results {
		late := slices.Contains(a.reply.Late, r.Job)
		if late {
			c.Log.Warn("the result came too late and does not count", "task", r.Job.Task(), "job", r.Job,
				"kind", r.Kind, "outcome", r.Outcome, "error", r.Error)
		}
		if r.Kind == jobs.KindEnd && !late {
			c.done++
		}
	}
	c.accept(ctx, a.reply, call.sent)
}

// accept starts the jobs of an answer. Their time counts from sent.
func (c *clerk) accept(ctx context.Context, r jobs.Reply, sent time.Duration) {
	c.specs.add(r.Specs, r.Unread)
	for _, g := range r.Jobs {
		looks := g.Mode.Looks() // the job has no lock, and nobody waits for a result
		if !looks {
			c.calls.lockedUntil(sent+g.Timeout, g.Timeout)
		}
		plan, ok := c.specs.get(g.Job.Task())
		if why := r.Unread[string(g.Job)]; why != "" {
			plan.Err = fmt.Errorf("the record of the host cannot be read: %s", why)
		}
		switch {
		case looks && (!ok || c.mode != taking || ctx.Err() != nil): // the queue hands it out again
		case !ok:
			c.Log.Error("the queue handed out a job without the spec of its task", "task", g.Job.Task(),
				"job", g.Job, "attempt", g.Attempt)
			c.results = append(c.results, verdict.Puzzled(g, jobs.DefaultPolicy(),
				"the job came without the spec of its task: a mistake in muster"))
		case g.Mode != jobs.ModeLost && (c.mode != taking || ctx.Err() != nil):
			c.results = append(c.results, verdict.Untouched(g, "the worker takes no new jobs"))
		default:
			c.begin(ctx, c.env.New(c.calls.zone, g, plan), sent)
		}
	}
	c.specs.trim()
	if c.mode == taking {
		c.reorderer.look(ctx, r)
	}

	if r.Why != "" {
		c.Log.Warn("the queue hands out no jobs", "zone", c.calls.zone, "why", r.Why,
			"left", max(r.Next.Sub(r.Now), 0).Round(time.Second))
	}
	c.idle.next, c.idle.now, c.idle.sent = r.Next, r.Now, sent
	c.idle.due = 0
	switch r.Status {
	case jobs.StatusNext, jobs.StatusFrozen, jobs.StatusHalted:
		c.idle.due = c.Clock() + nap(r, c.cfg.Poll)
	}
}

// nap returns the time to the next due job, by an answer of the queue, or most if the queue does
// not know one.
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
	c.idle.until = 0
	c.lines.attempts.Go(func() {
		defer a.Close()
		e := a.Run(ctx)
		select {
		case c.lines.finished <- e:
		case <-c.lines.gone:
		}
	})
}

// ended takes the result of an attempt. The result of an attempt that was given up before does not
// count any more.
func (c *clerk) ended(e attempt.Ending) {
	a := c.inHand[e.Token]
	if a == nil {
		return
	}
	t := a.Grant().Timeout
	c.calls.lockedUntil(a.Until()+jobs.Margin(t), t) // a checkpoint may have moved its end
	delete(c.inHand, e.Token)
	if !e.Stale {
		c.results = append(c.results, e.Result)
	}
}

// dropStuck gives up attempts that do not stop at their deadline. A process in which that happens
// is not sound: it takes no more jobs, and so comes to its end.
func (c *clerk) dropStuck() {
	for token, a := range c.inHand {
		if c.Clock() < a.MustEnd() || a.Expire() {
			continue
		}
		c.Log.Error("the job does not stop at its deadline, this worker takes no more jobs", "task",
			a.Grant().Job.Task(), "job", a.Grant().Job, "attempt", a.Grant().Attempt)
		c.calls.lockedUntil(a.Until()+jobs.Margin(a.Grant().Timeout), a.Grant().Timeout)
		delete(c.inHand, token)
		c.lines.stuck = true
		c.mode = max(c.mode, draining)
		if !a.Grant().Mode.Looks() {
			c.results = append(c.results, verdict.Stuck(a.Grant()))
		}
	}
}

// ordered obeys the master. Without a master nobody would start more children or stop this one, so
// the worker brings the jobs in hand to their end and takes no more.
func (c *clerk) ordered(o jobs.Order, ok bool) {
	switch {
	case !ok:
		c.orders = nil
		c.Log.Warn("the master is gone, the worker ends after the jobs in hand", "jobs", len(c.inHand))
	case o == jobs.OrderLook:
		c.look()
		return
	case o != jobs.OrderDrain:
		c.Log.Warn("the master gave an unknown order", "order", string(o))
		return
	}
	c.mode = max(c.mode, draining)
}

// over reports whether nothing is left to do.
func (c *clerk) over() bool {
	return c.empty() && (c.mode != taking || c.idle.due != 0 && !c.lingers())
}

// empty reports whether the clerk has no jobs, results, calls and walks through the queue.
func (c *clerk) empty() bool {
	return len(c.inHand) == 0 && len(c.results) == 0 && c.calls.call == nil &&
		c.reorderer.stop == nil
}

// hopeless returns why the worker should not wait for an answer any longer; nil: it should. The
// time after a stop may be over, or the worker has no results that would get lost, or the results
// do not count any more.
func (c *clerk) hopeless() error {
	now, call := c.Clock(), c.calls.call
	if c.mode == stopping && now >= c.stopUntil {
		return fmt.Errorf("stopped, and could not report %d jobs within %s", len(c.jobs()),
			c.cfg.LastWords)
	}
	if call == nil || call.tries == 0 || now-call.sent < c.cfg.GiveUp {
		return nil
	}
	if len(c.jobs()) > 0 {
		return c.orphaned()
	}
	return fmt.Errorf("no answer from the queue in zone %s for %s (%d tries)", c.calls.zone,
		c.cfg.GiveUp, call.tries)
}

// sleep returns the time until the clerk must look at the clock again.
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
	if c.lingers() {
		sooner(c.idle.until)
	} else {
		sooner(c.idle.due)
	}
	sooner(c.stopUntil)
	sooner(c.stopsAt())
	sooner(c.speakAt())
	for _, a := range c.inHand {
		sooner(a.MustEnd())
	}
	return max(at-c.Clock(), 0)
}

// jobs lists the jobs in hand: they run, or have ended and are not reported yet.
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

// report returns the state of the worker for its master. The deadline is the one of the running
// jobs: a result may wait for Redis for ever, and must not get the worker killed. Nor must a job
// that came too late, and is on its way back.
func (c *clerk) report(ready bool) jobs.Report {
	r := jobs.Report{Ready: ready, Jobs: c.jobs(), Done: c.done, Looked: c.idle.looked,
		Doubt: c.env.Agreed.Why(), Away: c.calls.call != nil && c.calls.call.tries > 1}
	if c.lingers() && c.empty() {
		r.Idle, r.Next, r.Now, r.Asked = true, c.idle.next, c.idle.now, c.idle.sent
	}
	for _, a := range c.inHand {
		if !a.TooLate() {
			r.Deadline = max(r.Deadline, a.Until())
		}
	}
	return r
}
