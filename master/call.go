package master

import (
	"context"
	"crypto/rand"
	"time"

	"muster/jobs"
	"muster/master/zones"
)

// A call is a request of a slot to Redis. The master repeats it until Redis answers. After
// an upgrade the new binary repeats it, so a call is plain data.
type call struct {
	Kind  callKind      `json:"kind"`
	Step  jobs.Step     `json:"step"`            // take, back
	Sent  time.Duration `json:"sent"`            // take: boot clock before it was first sent
	Why   string        `json:"why,omitempty"`   // lose
	Zones []string      `json:"zones,omitempty"` // lose: zones that have not answered yet
}

type callKind string

const (
	callTake callKind = "take" // jobs for a child
	callUndo callKind = "undo" // a take of a master that died before it had a child
	callBack callKind = "back" // jobs that no child has seen
	callLose callKind = "lose" // the child is gone
)

// ask makes the slot's call in a goroutine; the node then acts on the answer.
func (n *node) ask(s *slot) {
	c := s.call
	if c.Kind == callLose {
		n.askLose(s, c)
		return
	}
	var reply jobs.Reply
	if c.Kind == callTake {
		n.zones.Named(s.zone).Busy = true
	}
	n.call(s.zone, func(ctx context.Context) (err error) {
		reply, err = n.queue.Step(ctx, s.zone, c.Step)
		return err
	}, func() {
		switch {
		case n.frozen(): // the call stays; the next binary makes it and gets this answer
		case c.Kind == callTake:
			n.taken(s, reply)
		case c.Kind == callUndo && len(reply.Jobs) > 0:
			n.giveBack(s, reply.Jobs)
		default:
			n.answered(s, len(reply.Late))
		}
	})
}

func (n *node) askLose(s *slot, c *call) {
	zones := c.Zones
	var lost []jobs.ID
	n.call(s.zone, func(ctx context.Context) error {
		for len(zones) > 0 {
			ids, err := n.queue.Lose(ctx, zones[0], jobs.Loss{Node: n.name, Slot: s.name, Why: c.Why})
			if err != nil {
				return err
			}
			lost = append(lost, ids...)
			zones = zones[1:]
		}
		return nil
	}, func() {
		if n.frozen() {
			return
		}
		if len(lost) > 0 {
			n.log.Warn("jobs lost", "slot", s.name, "zone", s.zone, "why", c.Why, "jobs", lost)
		}
		n.answered(s, 0)
	})
}

// answered ends the call of a slot that has nothing more to report, and releases the slot.
// Its zone is looked at again now, because lost and returned jobs are due at once.
func (n *node) answered(s *slot, late int) {
	if late > 0 {
		n.log.Warn("given back too late", "slot", s.name, "zone", s.zone, "jobs", late)
	}
	if s.zone == "" {
		n.zones.Hint(n.children.machine.Boot())
	}
	n.zones.Named(s.zone).Hint(n.children.machine.Boot())
	s.call = nil
	n.release(s)
}

// giveBack returns jobs that no child has seen. No try is counted.
func (n *node) giveBack(s *slot, grants []jobs.Grant) {
	step := n.step(s, 0)
	for _, g := range grants {
		if g.Mode.Looks() {
			continue // the slot does not hold this job: the queue hands it out again by itself
		}
		step.Results = append(step.Results, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindBack})
	}
	s.call = &call{Kind: callBack, Step: step}
	n.ask(s)
}

// lose reports to the queue that the slot's child is gone. If the zone of the slot is not
// known, lose reports it to all zones: a zone in which the slot has no jobs ignores it.
func (n *node) lose(s *slot, why string) {
	zones := []string{s.zone}
	if s.zone == "" {
		zones = n.children.allowed.zones(n.cfg)
	}
	s.call = &call{Kind: callLose, Why: why, Zones: zones}
	n.ask(s)
}

// step returns a step of the slot under a new request id.
func (n *node) step(s *slot, want int) jobs.Step {
	return jobs.Step{Node: n.name, Slot: s.name, Request: rand.Text(), Want: want}
}

// call repeats f until Redis answers, and then runs done. While an upgrade is prepared it
// does nothing; resume makes the call later.
func (n *node) call(zone string, f func(context.Context) error, done func()) {
	if n.frozen() {
		return
	}
	ctx := n.work.Ctx
	n.work.Wait.Go(func() {
		tell := func(err error) { n.work.Post(func() { n.trouble(zones.Prefix+zone, err) }) }
		if n.work.Insist(ctx, f, tell) {
			n.work.Post(done)
		}
	})
}

// frozen reports whether goroutines end for an upgrade; then none may be started.
func (n *node) frozen() bool { return n.work.Ctx.Err() != nil }
