package intake

import (
	"context"
	"fmt"
	"slices"

	"muster/access"
	"muster/fleet"
	"muster/jobs"
	"muster/server/draft"
	"muster/server/web"
)

// checkRights refuses a task whole that would run on a host, or a runbook, for which the caller
// has no right. With allowed_only the task keeps the hosts for which there is one.
func (s *submission) checkRights(ctx context.Context) error {
	view := web.ViewOf(ctx)
	if s.ask.Body.AllowedOnly {
		keepAllowed(view, &s.draft, s.runbooks())
	}
	verbs := []access.Verb{access.Run}
	if err := s.scopeLane(view); err != nil {
		return err
	}
	if b := s.ask.Body; b.Supersedes != "" || b.OverrideFreeze != "" ||
		s.ask.Waits.Lane.EndsOthers() {
		verbs = append(verbs, access.Order) // it ends work of others, or goes on in spite of an order
	}
	if s.ask.Glass != "" {
		verbs = append(verbs, access.BreakGlass)
	}
	for _, verb := range verbs {
		for _, runbook := range s.runbooks() {
			if err := view.Refuse(access.Act{Verb: verb, Runbook: runbook}, s.draft.Names); err != nil {
				return err
			}
		}
	}
	return nil
}

// runbooks returns the names of all runbooks that the task brings to its hosts: those of its chain
// and the health check of its rollout, too.
func (s *submission) runbooks() []string {
	names := []string{s.draft.Task.Spec.Runbook}
	if s.chain != nil {
		names = append(names, s.chain.Do.Spec.Runbook)
		for _, link := range []*jobs.Link{s.chain.Stage, s.chain.Undo} {
			if link != nil {
				names = append(names, link.Spec.Runbook)
			}
		}
	}
	if r := s.ask.Body.Rollout; r != nil && r.Health != "" {
		names = append(names, r.Health)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// keepAllowed leaves hosts out on which the caller may not run these runbooks, unless that would be
// all: then the check behind it says what is missing.
func keepAllowed(view *web.View, p *draft.Draft, runbooks []string) {
	names := p.Names
	for _, runbook := range runbooks {
		names = view.Allowed(access.Act{Verb: access.Run, Runbook: runbook}, names)
	}
	if len(names) == 0 || len(names) == len(p.Names) {
		return
	}
	p.Keep(slices.DeleteFunc(slices.Clone(p.Picked), func(h fleet.Host) bool {
		return !slices.Contains(names, h.Name)
	}))
}

// foreign is the conflict with a task that the caller may not see.
func foreign(id jobs.TaskID) error {
	return conflict(id, fmt.Sprintf("its id %s is taken", id))
}
