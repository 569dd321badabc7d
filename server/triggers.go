package server

import (
	"context"

	"muster/server/apply"
	"muster/server/election"
	"muster/server/entries"
	"muster/server/firing"
)

// newFirer gives what fires triggers what it works with. Events come to it.
func newFirer(s *Server, d Deps) *firing.Firer {
	q := s.queue
	keeper := firing.NewKeeper(firing.Needed{Read: d.Triggers, Catalog: s.site.upkeep.runbooks.Catalog,
		Applied: entries.Triggers{Follower: s.site.upkeep.follower}.Applied}, s.log)
	n := firing.Needs{Keeper: keeper,
		Book: q.Firings, Tasks: q.Read.Tasks, Cancels: q.Submit.Cancels,
		Submits: s.intake.submits, Look: s.look, Rights: s.site.rights.Rights,
		Catalog: s.site.upkeep.runbooks.Catalog, Log: s.log, Now: s.clock}
	if s.history != nil {
		n.Past = s.history
	}
	f := firing.New(n)
	if s.site.arriving.needs.Fire == nil {
		s.site.arriving.needs.Fire = f
	}
	return f
}

// textsOf returns the kinds of entries that are kept as texts.
func textsOf(s *Server) apply.Texts {
	return apply.Texts{Follower: s.site.upkeep.follower, Runbooks: s.catalog.Load,
		InForce: s.site.upkeep.runbooks.Catalog, Triggers: s.site.firer.Keeper.File,
		Notify: s.site.telling.keeper.File}
}

// triggersDuty returns the duty to fire what triggers have collected.
func triggersDuty(s *Server) election.Duty {
	return election.Duty{Name: firing.Duty, Work: func(ctx context.Context, _ *election.Term) error {
		s.site.firer.Run(ctx)
		return nil
	}}
}

// firingRoutes returns the resource of triggers.
func firingRoutes(s *Server) firing.Routes {
	return firing.Routes{Firer: s.site.firer, Sees: s.site.tasks.Sees}
}
