package intake

import (
	"context"
	"errors"
	"fmt"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
)

// errChainBroken is wrapped when no server can ever continue a chain by itself.
var errChainBroken = errors.New("it cannot go on")

// Links submits the tasks of chains.
type Links struct {
	Intake *Intake
	Entry  *Entry
}

// PutLink submits a task of a chain, or continues what another server left half way.
func (l Links) PutLink(ctx context.Context, c jobs.Chain, link jobs.Link, hosts []string) (
	gone []string, err error) {
	t := jobs.Task{ID: link.Task, Spec: link.Spec}
	if link.Spec.On == "" {
		t.Spec.On = fleet.Fold(hosts)
	}
	if link.Task == c.Do.Task {
		t.At = c.At
	}
	t.Spec.After = t.At
	p, gone, err := l.Intake.Fix(ctx, Fixed{Task: t, Hosts: hosts, Operator: c.Operator,
		Proven: c.Proven})
	switch {
	case errors.Is(err, ErrFrozen):
		return gone, fmt.Errorf("%w: %w", err, errChainBroken)
	case err != nil:
		return gone, err
	case len(p.Names) == 0:
		return gone, fmt.Errorf("its hosts are in the inventory no more: %s: %w",
			wording.ClipList(fleet.Fold(gone)), errChainBroken)
	}
	return gone, l.Entry.PutOnce(ctx, &p)
}

// Hopeless reports whether a submit fails with this error however often it is tried.
func (l Links) Hopeless(err error) bool {
	return errors.Is(err, errChainBroken) || errors.Is(err, queue.ErrConflict) ||
		errors.Is(err, queue.ErrCancelled) || errors.Is(err, jobs.ErrNoBlob)
}
