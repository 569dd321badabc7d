package master

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/jobs"
	"muster/master/owners"
)

// A child is one worker process of this master.
type child struct {
	proc     Process
	started  time.Duration
	ready    bool
	grants   []jobs.Grant // only until the child is ready: the jobs to return if it never is
	report   jobs.Report  // the last one
	deadline time.Duration
	drained  bool            // it has the order to take no new jobs
	orders   chan jobs.Order // to be sent; never closed
	looks    int             // the orders to look that it got
	told     time.Duration   // when it got the last one
	doom     string          // why the master killed it
	version  string          // of its muster
}

func newChild(p Process, started time.Duration) *child {
	return &child{proc: p, started: started, orders: make(chan jobs.Order, ordersMax)}
}

// begin starts a child for the jobs of a take. If the child cannot be started, begin
// returns the jobs to the queue.
func (n *node) begin(s *slot, h jobs.Handover) {
	now := n.children.machine.Boot()
	p, err := n.start(s)
	if err != nil {
		n.children.startFailed(err.Error())
		n.giveBack(s, h.Reply.Jobs)
		return
	}
	n.files.sign(s, p.PID(), s.zone)
	s.free() // the child has the lock

	c := newChild(p, now)
	c.grants, c.version, c.deadline = h.Reply.Jobs, n.cfg.Version, deadlineOf(h)
	for _, g := range h.Reply.Jobs {
		c.report.Jobs = append(c.report.Jobs, g.Job)
	}
	s.child = c
	n.children.spawned++
	n.face.changed = true
	n.log.Debug("child started", "slot", s.name, "zone", s.zone, "pid", p.PID(), "jobs", c.report.Jobs)
	n.attend(s, &h)
}

func (n *node) start(s *slot) (Process, error) {
	if s.lock == nil {
		return nil, fmt.Errorf("slot %s is locked by another process", s.name)
	}
	// The mark of the take must be gone before a child can know of the jobs, because a
	// master that finds the mark believes that nobody has touched them.
	n.files.sign(s, n.face.pid, s.zone)
	if owners.Take(s.lock.Holder()) != "" {
		return nil, fmt.Errorf("slot %s: its file cannot be written", s.name)
	}
	return n.children.machine.Start(proc.Spec{
		Path: n.cfg.Image, Name: n.cfg.Path, Args: n.cfg.Args, Env: n.cfg.Env,
		Files: []*os.File{s.lock.File()},
	})
}

// deadlineOf returns the instant at which the last of the handed-over jobs must have ended;
// 0 if none has a bound.
func deadlineOf(h jobs.Handover) time.Duration {
	var end time.Duration
	for _, g := range h.Reply.Jobs {
		if g.Timeout > 0 {
			end = max(end, h.Sent+g.Timeout-jobs.Margin(g.Timeout))
		}
	}
	return end
}

// attend talks with the child of a slot until it is dead, in goroutines of its own. h is
// the first message to the child; nil if the child had it already.
func (n *node) attend(s *slot, h *jobs.Handover) {
	c := s.child
	w := n.work
	w.Wait.Go(func() {
		var talk sync.WaitGroup
		dead := make(chan struct{})
		talk.Go(func() {
			if err := speak(c, h, dead, n.waits.overdue); err != nil {
				w.Post(func() { s.doom(c, err.Error(), n.log) })
			}
		})
		talk.Go(func() {
			if err := hear(c, func(r jobs.Report) { w.Post(func() { n.reported(s, c, r) }) }); err != nil {
				w.Post(func() { s.doom(c, err.Error(), n.log) })
			}
		})
		exit, err := c.proc.Wait()
		close(dead)
		if err != nil {
			talk.Wait()
			return // detached: the next binary sees the end of the child
		}
		c.proc.Line().Expire()
		talk.Wait()
		c.proc.Line().Close()
		w.Post(func() { n.reaped(s, c, exit) })
	})
}

// speak sends the hand-over and all orders to the child.
func speak(c *child, h *jobs.Handover, dead <-chan struct{}, patience time.Duration) error {
	var err error
	if h != nil {
		err = c.proc.Line().Send(h)
	}
	for err == nil {
		select {
		case o := <-c.orders:
			err = c.proc.Line().Send(o)
		case <-dead:
			return nil
		}
	}
	select {
	case <-dead: // the death explains the failure, and reaped reports it
		return nil
	case <-time.After(patience):
		return fmt.Errorf("it does not listen: %w", err)
	}
}

// hear passes on the reports of the child until its end. It returns an error if the child
// sends nonsense.
func hear(c *child, pass func(jobs.Report)) error {
	for {
		var r jobs.Report
		err := c.proc.Line().Receive(&r)
		switch {
		case err == nil:
			pass(r)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
			errors.Is(err, proc.ErrDetached):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			// The child is dead, and there was no time to read all its reports. It may have
			// been ready, so its jobs must not be returned as untouched.
			pass(jobs.Report{Ready: true})
			return nil
		default:
			return fmt.Errorf("it talks nonsense: %w", err)
		}
	}
}

// reported notes a report of a child.
func (n *node) reported(s *slot, c *child, r jobs.Report) {
	if s.child != c {
		return
	}
	if !c.ready {
		c.ready, c.grants = true, nil
		n.children.started()
	}
	proved := c.report.Done == 0 && r.Done > 0
	z := n.zones.Named(s.zone)
	if c.tell(z, r, n.children.machine.Boot(), n.cfg.Poll) && z.Why != "" {
		z.Why = ""
		n.noteZones()
	}
	c.report = r
	if r.Deadline > 0 || !r.Ready { // the first may leave the hand-over's deadline
		c.deadline = r.Deadline
	}
	n.face.changed = true
	if r.Doubt != "" {
		n.face.doubt, n.face.doubted = r.Doubt, n.children.machine.Boot()
	}
	if proved || r.Bye && r.Error == "" && c.started >= n.children.failed {
		n.children.worked()
	}
	if !r.Bye {
		return
	}
	if r.Error != "" {
		n.log.Warn("child gives up", "slot", s.name, "zone", s.zone, "pid", c.proc.PID(),
			"error", r.Error)
		if r.Done == 0 {
			n.children.died(c, r.Error)
		}
	}
}

// reaped handles the death of a child: it returns the jobs of a child that never was ready,
// and reports the jobs of any other child as lost.
func (n *node) reaped(s *slot, c *child, exit proc.Exit) {
	why := exit.String()
	if c.doom != "" {
		why = c.doom + ": " + why
	}
	level := n.log.Debug
	if exit != (proc.Exit{}) {
		level = n.log.Warn
	}
	level("child ended", "slot", s.name, "zone", s.zone, "pid", c.proc.PID(), "why", why,
		"jobs", c.report.Jobs, "done", c.report.Done)

	s.child = nil
	if c.looking() {
		now := n.children.machine.Boot()
		n.zones.Named(s.zone).Heard(now, now, now)
	}
	n.face.changed = true
	s.lock = n.files.relock(s)
	if n.stage == running && c.death(exit, n.children.machine.Boot()).fruitless() {
		n.children.died(c, why)
	}
	if c.ready {
		n.lose(s, why)
		return
	}
	n.giveBack(s, c.grants)
}

// enforce kills the children that are past their deadlines, and returns the instant of the
// next deadline.
func (n *node) enforce(now time.Duration) time.Duration {
	at := never
	for _, s := range n.slots {
		c := s.child
		if c == nil || c.doom != "" {
			continue
		}
		end, why := c.end(n.waits)
		if end > now {
			at = min(at, end)
			continue
		}
		s.doom(c, why, n.log)
	}
	return at
}

// end returns the instant at which the child must be killed, and the reason.
func (c *child) end(w waits) (time.Duration, string) {
	end, why := never, ""
	if c.deadline > 0 && len(c.report.Jobs) > 0 {
		end, why = c.deadline+w.overdue, "past its deadline"
	}
	if late := c.started + w.ready; !c.ready && late < end {
		end, why = late, "not ready after "+w.ready.String()
	}
	if late := c.told + w.look; c.looking() && len(c.report.Jobs) == 0 && late < end {
		end, why = late, "does not look within "+w.look.String()
	}
	return end, why
}

// doom kills a child that may not end by itself.
func (s *slot) doom(c *child, why string, log hclog.Logger) {
	if s.child != c || c.doom != "" {
		return
	}
	c.doom = why
	log.Warn("child is killed", "slot", s.name, "zone", s.zone, "pid", c.proc.PID(), "why", why)
	if err := c.proc.Kill(); err != nil {
		log.Error("child cannot be killed", "slot", s.name, "pid", c.proc.PID(), "error", err)
	}
}

// drain orders the child to end after the jobs in hand.
func (c *child) drain() {
	if !c.drained {
		c.drained = true
		c.orders <- jobs.OrderDrain // has room for this one: see ordersMax
	}
}
