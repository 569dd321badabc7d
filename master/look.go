package master

import (
	"time"

	"muster/jobs"
	"muster/master/zones"
)

// ordersMax is the number of orders that may wait for a child: one to look, and one to drain.
const ordersMax = 2

// looking reports whether the child has an order to look that it has not obeyed yet.
func (c *child) looking() bool { return c.looks > c.report.Looked }

// idle reports whether the child waits for an order to look.
func (c *child) idle() bool { return c.report.Idle && !c.looking() && !c.drained && c.doom == "" }

// look orders an idle child to ask the queue for jobs, and reports whether the order is on its way.
func (c *child) look(now time.Duration) bool {
	select {
	case c.orders <- jobs.OrderLook:
		c.looks, c.told = c.looks+1, now
		return true
	default: // it does not read
		return false
	}
}

// idle returns a slot whose child is idle, of a zone or, if that is empty, of any; nil: there is
// none.
func (l slots) idle(zone string) *slot {
	for _, s := range l.inUse() {
		if s.child != nil && s.child.idle() && (zone == "" || s.zone == zone) {
			return s
		}
	}
	return nil
}

// wake lets an idle child look after a zone, and reports whether there is one. The zone rests until
// the child has looked, or at most poll.
func (l slots) wake(z *zones.Zone, now, poll time.Duration) bool {
	s := l.idle(z.Name)
	if s == nil || !s.child.look(now) {
		return false
	}
	z.Asked = now + poll
	return true
}

// lookMin is the least time between two looks that find nothing, whatever the clocks say.
const lookMin = 100 * time.Millisecond

// tell lets a zone learn from a report of its child when it is due next. c has the report before.
// It reports whether the child has found jobs by a look.
func (c *child) tell(z *zones.Zone, r jobs.Report, now, poll time.Duration) (found bool) {
	obeyed := c.looking() && r.Looked > c.report.Looked
	if r.Idle && r.Now != 0 {
		z.Looked, z.Redis = now, r.Now
	}
	switch {
	case r.Bye && (c.looks > r.Looked || r.Next == 0 || z.Redis == 0):
		z.Heard(now, r.Asked, now) // it ended when an order was on its way, or does not know
	case r.Bye, r.Idle && (obeyed || !c.report.Idle):
		z.Heard(max(z.Quiet(r.Next, now, poll), now+lookMin), r.Asked, now)
	case obeyed: // where one job is due there may be more
		z.Heard(now, r.Asked, now)
		return true
	}
	return false
}

// shed lets idle children end until so many slots are about to be free.
func (l slots) shed(many int) {
	for _, s := range l {
		if s.child != nil && s.child.drained && len(s.child.report.Jobs) == 0 {
			many--
		}
	}
	for s := l.idle(""); many > 0 && s != nil; s = l.idle("") {
		s.child.drain()
		many--
	}
}
