package server

import (
	"muster/jobs"
	"muster/server/duties"
	"muster/server/intake"
)

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
		Jobs: q.Read.Jobs, Cancels: q.Submit.Cancels,
		Links: intake.Links{Intake: s.intake.submits, Entry: s.intake.entry},
		Waits: func() duties.Reasons { return newWaits(s).Lacks(nil) }, Log: s.log, Now: s.clock}
}
