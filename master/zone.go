package master

import (
	"context"
	"time"

	"muster/jobs"
	"muster/master/zones"
)

// explain notes why nothing starts in a zone, and logs each change of the reason.
func (n *node) explain(z *zones.Zone, r jobs.Reply) {
	why := r.Why
	if r.Status == jobs.StatusFrozen {
		why = "frozen until " + r.Next.Time().Format(time.RFC3339) + ": " + why
	}
	if why == z.Why {
		return
	}
	z.Why = why
	if why == "" {
		n.log.Info("work goes on", "zone", z.Name)
	} else {
		left := max(r.Next.Sub(r.Now), 0).Round(time.Second)
		n.log.Warn("nothing starts", "zone", z.Name, "why", why, "left", left)
	}
	n.noteZones()
}

// noteZones shows the zones in which nothing starts, and those that do not answer.
func (n *node) noteZones() { n.face.note(&n.face.notes.zones, n.zones.Nothing(n.face.failing)) }

// recover finds out which jobs the slots of this node have in a zone, and reports the jobs
// of slots without a process as lost. The node takes nothing in the zone before, because a
// take would make Redis forget the earlier jobs of its slot.
func (n *node) recover(z *zones.Zone) {
	var held map[string][]jobs.ID
	z.Busy = true
	n.call(z.Name, func(ctx context.Context) (err error) {
		held, err = n.queue.Held(ctx, z.Name, n.name)
		return err
	}, func() {
		n.tellLost(z, n.slots.unused(z, held))
		n.face.changed = true // orphans may have got their jobs
	})
}

func (n *node) tellLost(z *zones.Zone, names []string) {
	n.call(z.Name, func(ctx context.Context) error {
		for len(names) > 0 {
			_, err := n.queue.Lose(ctx, z.Name, jobs.Loss{Node: n.name, Slot: names[0], Why: vanished})
			if err != nil {
				return err
			}
			names = names[1:]
		}
		return nil
	}, func() {
		z.Known, z.Busy, z.Due = true, false, n.children.machine.Boot()
	})
}
