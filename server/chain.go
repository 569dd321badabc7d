package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"muster/api"
	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/scripts"
	"muster/server/draft"
	"muster/server/duties"
	"muster/server/stock"
)

// acceptChain keeps a chain and submits its first task. Who dies in between has kept it,
// and another server goes on.
func (s *Server) acceptChain(ctx context.Context, b api.Submit, c jobs.Chain, p draft.Draft) (
	*submitOutput, string, error) {
	if b.DryRun {
		out := s.dryRun(p)
		out.Body.Follows = duties.InfoOf(c, jobs.ChainSeen{})
		return out, "", nil
	}
	kept, err := s.queue.Hub.Chains.SaveChain(ctx, c)
	if err != nil {
		return nil, resultFailed, away(fmt.Sprintf("%s; submit it again with id %s", err, c.ID))
	}
	if kept.Runbook != c.Runbook || kept.On != c.On || kept.Operator != c.Operator {
		return nil, resultRefused, conflict(c.ID, "it is a chain of "+kept.Runbook+" on "+
			clip(kept.On))
	}
	if err := s.chainDuty.Advance(ctx, c.ID); err != nil {
		return nil, resultFailed, away(fmt.Sprintf("%s; it is kept, and goes on when Redis is back: "+
			"submit it again with id %s to hear of it", err, c.ID))
	}
	info, err := s.chainInfo(ctx, c.ID)
	if err != nil {
		return nil, resultFailed, problem(err)
	}
	p.Task.ID = c.ID
	p.Task.Spec.Chain = c.ID
	out := &submitOutput{http.StatusCreated, p.Answer(s.durable)}
	if t, err := s.queue.Read.Tasks.Task(ctx, c.ID); err == nil {
		out.Body.TaskInfo = t
	}
	out.Body.Follows = &info
	return out, resultAccepted, nil
}

// putLink submits a task of a chain, or goes on with what another server left half way.
// gone are those hosts that are in the inventory no more.
func (s *Server) putLink(ctx context.Context, c jobs.Chain, l jobs.Link, names []string) (
	gone []string, err error) {
	v, err := s.look.Scene(ctx, "")
	if err != nil {
		return nil, err
	}
	if v.Stock == nil {
		return nil, stock.ErrNone
	}
	hosts, gone := v.Stock.Find(names)
	if len(hosts) == 0 {
		return gone, fmt.Errorf("its hosts are in the inventory no more: %s: %w",
			wording.ClipList(fleet.Fold(gone)), errChainBroken)
	}
	var frozen scripts.Frozen
	if err := json.Unmarshal(l.Spec.Action, &frozen); err != nil {
		return gone, fmt.Errorf("%w: %w", err, errChainBroken)
	}
	t := jobs.Task{ID: l.Task, Spec: l.Spec}
	if l.Spec.On == "" {
		t.Spec.On = fleet.Fold(names)
	}
	if l.Task == c.Do.Task {
		t.At = c.At
	}
	t.Spec.After = t.At
	p := draft.Setting{Scene: v, Operator: c.Operator, Proven: c.Proven, Now: s.now()}.Draft(t, hosts)
	p.Blobs = frozen.Blobs()
	return gone, s.putOnce(ctx, &p, false)
}
