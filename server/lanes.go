package server

import (
	"context"

	"muster/server/duties"
	"muster/server/election"
	"muster/server/lanes"
)

// laneDuty lets tasks of lanes begin whose turn it is.
func laneDuty(s *Server) election.Duty {
	return election.Duty{Name: lanes.Duty, Work: func(ctx context.Context, _ *election.Term) error {
		duties.Repeat(ctx, s.log, "lanes", lanes.Every, newLanes(s).RunOnce)
		return nil
	}}
}

// newLanes gives the duty that lets tasks of lanes begin what it works with.
func newLanes(s *Server) *lanes.Lanes {
	q := s.queue
	return &lanes.Lanes{Kept: q.Submit.Lined, Tasks: q.Read.Tasks, Commits: q.Submit.Puts,
		Cancels: q.Submit.Cancels, Log: s.log, Now: s.clock}
}
