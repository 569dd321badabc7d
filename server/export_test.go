package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"muster/api"
	"muster/server/duties"
	"muster/server/firing"
	"muster/server/historian"
	"muster/server/state"
)

// Handler answers as the server does, for requests from anywhere.
func (s *Server) Handler() http.Handler { return s.handler }

// Duty does one round of all duties but the schedules.
func (s *Server) Duty(ctx context.Context) error {
	return errors.Join(s.tend.RunOnce(ctx), s.stock.Compare(ctx))
}

// lastingTerm is a term that never ends, by its number.
type lastingTerm int64

// Number is the number of the term.
func (t lastingTerm) Number() int64 { return int64(t) }

// Trusted is true.
func (lastingTerm) Trusted() bool { return true }

// NewSchedules begins a term of the schedules, which never doubts.
func NewSchedules(s *Server, number int64) *duties.Schedules {
	return newSchedules(s, lastingTerm(number))
}

// NewHistorian begins a term of the historian, which never doubts, on a server that does not run. The
// server has read its inventory, as one that runs has before its duties begin.
func NewHistorian(ctx context.Context, s *Server) (*historian.Historian, error) {
	if err := s.stock.Reload(ctx); err != nil {
		return nil, err
	}
	return historian.New(historianNeeds(s), lastingTerm(1)), nil
}

// AwayHistory returns the outage of history as people read it.
func (s *Server) AwayHistory(ctx context.Context) (*api.AwayHistory, error) {
	return state.Away(ctx, stateOf(s.queue), s.history)
}

// LookAtDepths looks once how many jobs wait in each zone.
func (s *Server) LookAtDepths(ctx context.Context) error { return s.site.upkeep.depths.RunOnce(ctx) }

// Firer fires triggers as the duties of the server do.
func (s *Server) Firer() *firing.Firer { return s.site.firer }

// Fix gives a server that does not run yet another clock, and the chance of its ids.
// It leaves the ones that are nil.
func (s *Server) Fix(now func() time.Time, chance func() uint16) {
	if now != nil {
		s.now = now
	}
	if chance != nil {
		s.chance = chance
	}
}

// Streams returns the number of streams of events that are open.
func (s *Server) Streams() int { return int(s.streams.Open()) }
