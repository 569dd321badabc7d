package server

import (
	"context"
	"errors"
	"fmt"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/duties"
	"muster/server/intake"
)

// errChainBroken is wrapped when no server can ever continue a chain by itself.
var errChainBroken = errors.New("it cannot go on")

// links submits the tasks of chains.
type links struct{ to requests }

// PutLink submits a task of a chain, or continues what another server left half way.
func (l links) PutLink(ctx context.Context, c jobs.Chain, link jobs.Link, hosts []string) (
	gone []string, err error) {
	t := jobs.Task{ID: link.Task, Spec: link.Spec}
	if link.Spec.On == "" {
		t.Spec.On = fleet.Fold(hosts)
	}
	if link.Task == c.Do.Task {
		t.At = c.At
	}
	t.Spec.After = t.At
	p, gone, err := l.to.submits.Fix(ctx, intake.Fixed{Task: t, Hosts: hosts, Operator: c.Operator,
		Proven: c.Proven})
	switch {
	case errors.Is(err, intake.ErrFrozen):
		return gone, fmt.Errorf("%w: %w", err, errChainBroken)
	case err != nil:
		return gone, err
	case len(p.Names) == 0:
		return gone, fmt.Errorf("its hosts are in the inventory no more: %s: %w",
			wording.ClipList(fleet.Fold(gone)), errChainBroken)
	}
	return gone, l.to.entry.PutOnce(ctx, &p)
}

// Hopeless reports whether a submit fails with this error however often it is tried.
func (l links) Hopeless(err error) bool {
	return errors.Is(err, errChainBroken) || errors.Is(err, queue.ErrConflict) ||
		errors.Is(err, queue.ErrCancelled) || errors.Is(err, jobs.ErrNoBlob)
}

// newWaves gives the duty to open waves what it works with.
func newWaves(s *Server, chains *duties.Chains) *duties.Waves {
	q := s.queue
	proofs := duties.Proving{Endings: q.Read.Endings, Trust: s.site.trust, Past: s.history}
	return &duties.Waves{Tasks: q.Read.Tasks, Specs: s.intake.specs,
		Jobs: q.Read.Jobs, Rollouts: q.Orders.Rollouts,
		Openings: q.Orders.Waves, Cancels: q.Submit.Cancels, Checks: checks{s.intake}, Chains: chains,
		Proofs: proofs,
		NewID:  func() jobs.TaskID { return jobs.NewTaskID(s.now(), s.chance()) }, Log: s.log}
}

// newChains gives the duty to continue chains what it works with.
func newChains(s *Server) *duties.Chains {
	q := s.queue
	return &duties.Chains{Store: q.Hub.Chains, Care: q.Hub.ChainDuty, Tasks: q.Read.Tasks,
		Jobs: q.Read.Jobs, Cancels: q.Submit.Cancels, Links: links{s.intake},
		Waits: func() duties.Reasons { return newWaits(s).Lacks(nil) }, Log: s.log, Now: s.clock}
}
