package worker

import (
	"time"

	"muster/jobs"
)

// idleness is the time of a worker without jobs. It may stay for a while, because a process that is
// up begins the next job sooner than one that must start. The master alone decides whether it asks
// for jobs: the node may be paused, or have other zones to serve.
type idleness struct {
	next   jobs.Micros   // the time of the next work, by the last answer of the queue
	now    jobs.Micros   // Redis' time of that answer
	sent   time.Duration // before the call of that answer was sent, on the boot clock
	due    time.Duration // no job is due before, on the boot clock; 0: one may be due
	until  time.Duration // when the worker ends unless a job comes; 0: it is not idle
	asked  bool          // an order to look has no answer yet
	looked int           // the orders to look that have one
}

// answered notes an answer of the queue.
func (i *idleness) answered() {
	if i.asked {
		i.asked = false
		i.looked++
	}
}

// linger begins the time of a clerk that has nothing to do.
func (c *clerk) linger() {
	if c.idle.until == 0 && c.mode == taking && c.idle.due != 0 && c.empty() {
		c.idle.until = c.Clock() + c.cfg.Linger
	}
}

// lingers reports whether the clerk waits for an order to look.
func (c *clerk) lingers() bool {
	return c.Clock() < c.idle.until && c.mode == taking && c.idle.due != 0 && !c.idle.asked
}

// look lets the clerk ask for jobs. A clerk that is not idle asks anyway.
func (c *clerk) look() {
	c.idle.asked = true
	c.idle.due = 0
}
