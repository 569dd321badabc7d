package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"muster/jobs"
	"muster/worker/verdict"
)

// A caller makes the calls to the queue, one at a time, and repeats each until the queue answers.
type caller struct {
	*Worker
	node    string
	slot    string
	zone    string
	prefix  string // of request ids
	number  int    // of the calls so far
	call    *call  // under way or to be repeated; nil: none
	answers chan answer
	tries   sync.WaitGroup
	locked  time.Duration // until then no other worker can have a job of this one
}

// A call is a question to the queue, with results. It never changes, however often it is sent,
// because the queue may have carried it out although the answer got lost.
type call struct {
	step   jobs.Step
	sent   time.Duration // on the boot clock, before it was first sent
	tries  int           // without an answer
	next   time.Duration // when to send it again; 0: it is on its way
	logged time.Duration // the last time at which its trouble was logged
}

type answer struct {
	reply jobs.Reply
	err   error
}

// start gives a new call its request id, and sends it. The time of the grants in the answer counts
// from now: whatever the network does, their locks begin later.
func (c *caller) start(ctx context.Context, s jobs.Step) {
	c.number++
	s.Request = fmt.Sprintf("%s%d", c.prefix, c.number)
	c.call = &call{step: s, sent: c.Clock()}
	c.send(ctx)
}

// resend sends the call again when its pause is over.
func (c *caller) resend(ctx context.Context) {
	if c.call != nil && c.call.next != 0 && c.Clock() >= c.call.next {
		c.send(ctx)
	}
}

// send sends the call once. A stop of the worker does not cancel the call, because it carries the
// results of the stopped jobs.
func (c *caller) send(ctx context.Context) {
	c.call.next = 0
	step := c.call.step
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Call)
	c.tries.Go(func() {
		defer cancel()
		reply, err := c.Queue.Step(ctx, c.zone, step)
		c.answers <- answer{reply, err} // there is room: one try at a time
	})
}

// failed plans the next try, and logs the trouble once a minute.
func (c *caller) failed(err error) {
	now := c.Clock()
	c.call.tries++
	c.call.next = now + verdict.Pause(c.call.tries, c.env.Chance())
	if c.call.tries == 1 || now-c.call.logged >= time.Minute {
		c.call.logged = now
		c.Log.Warn("no answer from the queue, the call will be repeated", "zone", c.zone,
			"request", c.call.step.Request, "tries", c.call.tries,
			"results", len(c.call.step.Results), "error", err)
	}
}

// answered ends the call, and returns it.
func (c *caller) answered() *call {
	call := c.call
	c.call = nil
	if call.tries > 0 {
		c.Log.Info("the queue answers again", "zone", c.zone, "request", call.step.Request,
			"away", c.Clock()-call.sent)
	}
	return call
}
