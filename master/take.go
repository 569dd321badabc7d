package master

import (
	"time"

	"muster/jobs"
	"muster/master/owners"
)

// fill takes jobs while a zone is due and a slot is free, and returns when to try again.
func (n *node) fill(now time.Duration) time.Duration {
	if n.stage != running || n.upgrades == replacing {
		return never
	}
	if n.children.paused > now {
		return n.children.paused
	}
	if n.children.failures > 0 && n.slots.unready() > 0 {
		return never // first a child must show that children can start at all
	}
	if n.children.allowed.holds() != "" {
		return never
	}
	n.slots.shed(len(n.slots) - n.slots.limit(n))
	for {
		z := n.zones.Next(now, n.slots.served())
		if z == nil {
			return n.zones.FirstDue()
		}
		if n.slots.wake(z, now, n.cfg.Poll) {
			continue
		}
		if at := n.children.allowed.wait(n.slots, n.face.failing, n.children.round, now); at > now {
			return at
		}
		s, err := n.freeSlot(z.Name)
		if err != nil {
			n.children.startFailed(err.Error())
			return n.children.paused
		}
		if s == nil {
			if idle := n.slots.idle(""); idle != nil { // of another zone
				idle.child.drain()
				return never // its end wakes the node
			}
			return n.shareSlots(now)
		}
		n.children.round = now
		n.take(s)
	}
}

// take requests the first jobs of a child.
func (n *node) take(s *slot) {
	c := &call{Kind: callTake, Step: n.step(s, n.cfg.Slots), Sent: n.children.machine.Boot()}
	s.call = c
	// If this master dies before it has started a child, the next one finds the request
	// here, and knows that nobody has worked on its jobs.
	n.files.sign(s, n.face.pid, owners.Taking(s.zone, c.Step.Request))
	n.ask(s)
}

// taken handles the answer of a take: it starts a child for the jobs, or releases the slot
// if there are none.
func (n *node) taken(s *slot, r jobs.Reply) {
	z := n.zones.Named(s.zone)
	z.Answered(r, n.children.machine.Boot(), n.cfg.Poll)
	n.explain(z, r)
	sent := s.call.Sent
	s.call = nil
	switch {
	case len(r.Jobs) == 0:
		n.release(s)
	case n.stage != running || z.Closed || n.children.allowed.holds() != "":
		n.giveBack(s, r.Jobs)
	default:
		n.begin(s, jobs.Handover{
			Node: n.name, Slot: s.name, Zone: s.zone,
			Sent: sent, Reply: r, Config: n.cfg.Worker,
		})
	}
}

// shareSlots makes room for a zone that is due and has no child, once that zone has waited
// for its turn: a child of the zone with the most children gets the order to end after the
// jobs in hand. These may take hours, so after another turn shareSlots asks the next child
// too. If the waiting zone then has no due job, the next takes use the slots for the other
// zones again.
func (n *node) shareSlots(now time.Duration) time.Duration {
	at := n.zones.Turn(n.slots.served(), n.children.shared, n.cfg.Turn)
	if at > now {
		return at
	}
	s := n.slots.mostServed()
	if s == nil {
		return never // all children have the order already
	}
	n.log.Debug("child makes room for another zone", "slot", s.name, "zone", s.zone)
	n.children.shared = now
	s.child.drain()
	return now + n.cfg.Turn
}
