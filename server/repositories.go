package server

import (
	"context"

	"muster/server/election"
	"muster/server/gitops"
)

// newFollower gives what follows repositories what it works with, but for the way to apply, which
// is there when the routes are.
func newFollower(s *Server, d Deps) *gitops.Follower {
	return gitops.New(gitops.Needs{Config: d.Repositories, Places: s.queue.Places,
		Audit: s.audit.Scribe, Log: s.log, Now: s.clock, Chance: func() uint16 { return s.chance() }})
}

// repositoriesDuty returns the duty to follow repositories.
func repositoriesDuty(s *Server) election.Duty {
	return election.Duty{Name: gitops.Duty, Work: func(ctx context.Context, _ *election.Term) error {
		s.site.upkeep.repositories.Run(ctx)
		return nil
	}}
}
