package warden

import (
	"context"
	"errors"
	"fmt"

	"muster/fleet"
	"muster/jobs"
	"muster/trust"
)

// Kin judges a host on which a job wants to write a marker, because it is in the redundancy group
// of its own host. In reports whether the order of the task is for that host, too. The error is a
// *Doubt if the node must not connect to it: its record in Redis is not the one that was signed.
// Any other error leaves that open. Check was called for the job before.
func (w *Warden) Kin(ctx context.Context, zone string, id jobs.ID, h fleet.Host) (in bool,
	err error) {
	rules, err := w.rules()
	if err != nil {
		return false, fmt.Errorf("%s: %w", trust.Unread, err)
	}
	if rules == nil { // the node believes Redis
		return true, nil
	}
	k, err := w.task(ctx, zone, id.Task(), rules)
	if err != nil {
		return false, err
	}
	why := k.why
	if why == nil {
		if in, why = w.signed(ctx, zone, h, k); isAway(why) {
			return false, why
		}
	}
	if why == nil {
		return in, nil
	}
	ruling := rules.Policy.Judge(k.standing, why, trust.Deed{})
	if ruling.Refused() || ruling.Doubted() {
		w.tell(ctx, id, k, ruling)
	}
	if ruling.Refused() {
		return false, &Doubt{why}
	}
	return false, nil
}

// signed reports whether an order is for a host, and returns an error if it has another record of
// the host, or none.
func (w *Warden) signed(ctx context.Context, zone string, h fleet.Host, k *known) (in bool,
	err error) {
	s, err := w.share(ctx, zone, h.Name, k)
	if err != nil {
		return false, err
	}
	want, in := s.hosts[h.Name]
	if !in {
		want = s.kin[h.Name]
	}
	have, err := trust.RecordOf(h)
	switch {
	case err != nil:
		return false, err
	case want == "":
		return false, fmt.Errorf("the order does not have host %s, another member of the group: "+
			"the inventory was changed, or an earlier server made the order; submit the task anew", h.Name)
	case want != have:
		return false, fmt.Errorf("host %s, another member of the group, is not reached as the order "+
			"says: %w", h.Name, errChanged)
	}
	return in, nil
}

var errChanged = errors.New("somebody has changed its address, its keys or its login in Redis")
