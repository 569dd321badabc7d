package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"muster/jobs"
	"muster/worker/verdict"
)

// A caller has at most one call to the queue under way, and repeats it until it
// is answered.
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
	locked  time.Duration // until then nobody else can have a job that was here
}

// A call is what is asked of the queue. It stays as it is however often it is
// sent, because the queue may have carried it out without our seeing the answer.
type call struct {
	step  jobs.Step
	sent  time.Duration // on the boot clock, before it was first sent
	tries int           // sent so often without an answer
	next  time.Duration // when to send it again; 0: it is on its way
	told  time.Duration // when its trouble was last logged
}

type answer struct {
	reply jobs.Reply
	err   error
}

// start sends a new call. Its request id is set here. Grants of the answer count
// their time from now: whatever the network does, their locks begin later.
func (c *caller) start(ctx context.Context, s jobs.Step) {
	c.number++
	s.Request = fmt.Sprintf("%s%d", c.prefix, c.number)
	c.call = &call{step: s, sent: c.Clock()}
	c.send(ctx)
}

// resend sends the call again if it is time to.
func (c *caller) resend(ctx context.Context) {
	if c.call != nil && c.call.next != 0 && c.Clock() >= c.call.next {
		c.send(ctx)
	}
}

// send tries once. A stop of the worker does not cut the call: it carries the
// results of what was stopped.
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

// failed plans the next try, and says once a minute that there is trouble.
func (c *caller) failed(err error) {
	now := c.Clock()
	c.call.tries++
	c.call.next = now + verdict.Pause(c.call.tries, rand.Float64())
	if c.call.tries == 1 || now-c.call.told >= time.Minute {
		c.call.told = now
		c.Log.Warn("no answer from the queue, the call will be repeated", "zone", c.zone,
			"request", c.call.step.Request, "tries", c.call.tries,
			"results", len(c.call.step.Results), "error", err)
	}
}

// answered forgets the call, and returns it.
func (c *caller) answered() *call {
	call := c.call
	c.call = nil
	if call.tries > 0 {
		c.Log.Info("the queue answers again", "zone", c.zone, "request", call.step.Request,
			"away", c.Clock()-call.sent)
	}
	return call
}
