package server

import (
	"context"

	"muster/server/election"
	"muster/server/firing"
)

// newFirer gives what fires triggers what it works with. Events come to it.
func newFirer(s *Server, d Deps) *firing.Firer {
	q := s.queue
	n := firing.Needs{Keeper: firing.NewKeeper(d.Triggers, s.catalog.Load, s.log),
		Book: q.Firings, Tasks: q.Read.Tasks, Cancels: q.Submit.Cancels,
		Submits: s.intake.submits, Look: s.look, Rights: s.site.rights.Rights,
		Catalog: s.catalog.Load, Log: s.log, Now: s.clock}
	if s.history != nil {
		n.Past = s.history
	}
	f := firing.New(n)
	if s.site.arriving.needs.Fire == nil {
		s.site.arriving.needs.Fire = f
	}
	return f
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
