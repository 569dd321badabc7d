package server

import (
	"muster/server/duties"
	"muster/server/intake"
)

// newSchedules gives the duty to fire schedules what it works with.
func newSchedules(s *Server, t duties.Term) *duties.Schedules {
	q := s.queue
	d := &duties.Schedules{Ticks: q.Hub.Ticks, Book: q.Hub.Schedules, Tasks: q.Read.Tasks,
		Leads: q.Hub.Duties, Intake: intake.Ticks{Intake: s.intake.submits, Entry: s.intake.entry},
		Term: t, Who: s.who, Log: s.log, Now: s.clock}
	if s.history != nil {
		d.Past = s.history
	}
	return d
}
