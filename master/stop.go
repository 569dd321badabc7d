package master

import (
	"time"
)

// drain orders the children to end after the jobs in hand.
func (n *node) drain() {
	if n.stage != running {
		return
	}
	n.log.Info("draining", "children", len(n.slots), "for", n.cfg.Drain)
	n.enter(draining, n.cfg.Drain)
	n.slots.drain()
}

// stop kills the children.
func (n *node) stop(why string) {
	if n.stage >= killing {
		return
	}
	n.log.Info("stopping", "why", why)
	n.enter(killing, n.waits.last)
	for _, s := range n.slots {
		if s.child != nil {
			s.doom(s.child, "stopped", n.log)
		}
	}
}

func (n *node) enter(next stage, lasts time.Duration) {
	n.stage, n.until = next, n.children.machine.Boot()+lasts
	n.upgrades = steady
	n.face.changed = true
}

// escalate enters the next stage when the present one has lasted too long, and returns when
// that will be.
func (n *node) escalate(now time.Duration) time.Duration {
	switch {
	case n.stage == running:
		return never
	case now < n.until:
		return n.until
	case n.stage == draining:
		n.log.Warn("not drained in time", "after", n.cfg.Drain)
		n.enter(ending, n.waits.term)
		n.slots.terminate(n.log)
	case n.stage == ending:
		n.stop("children did not end when asked to")
	default:
		n.stage = surrendered
	}
	return now
}

// over reports whether there is nothing left to wait for. The node waits for orphans only
// while it drains, because it cannot end them.
func (n *node) over() bool {
	if n.stage == running {
		return false
	}
	for _, s := range n.slots {
		if s.orphan == nil || n.stage == draining {
			return n.stage == surrendered
		}
	}
	return true
}
