package server

import (
	"context"
	"net/http"

	"muster/events"
	"muster/jobs/queue/inbox"
	"muster/server/arrivals"
	"muster/server/dispatch"
	"muster/server/election"
	"muster/server/inner"
	"muster/server/programs"
	"muster/server/rights"
)

// arriving has the way of events from elsewhere into a server.
type arriving struct {
	needs   arrivals.Needs
	keeper  *arrivals.Keeper
	durable string
}

// eventDoor returns the door of sources. It counts those who prove nothing as others at the door.
func eventDoor(s *Server, refused func(r *http.Request, reason string)) *arrivals.Door {
	a := s.site.arriving
	return arrivals.Door{Needs: a.needs, Keeper: a.keeper, Refused: refused, Durable: a.durable,
		Log: s.log, Now: s.clock}.Open()
}

// arrivalsOf returns the resource of events.
func arrivalsOf(s *Server) arrivals.Routes {
	return arrivals.Routes{Needs: s.site.arriving.needs, Keeper: s.site.arriving.keeper,
		Customer: rights.Customers(s.stock.Hosts), Foresee: s.site.firer.Foresee, Log: s.log,
		Now: s.clock}
}

// eventDuty returns the duty to work on events: triggers decide what they start.
func eventDuty(s *Server) election.Duty {
	a := s.site.arriving.needs
	return election.Duty{Name: inbox.Duty, Work: func(ctx context.Context, t *election.Term) error {
		return dispatch.New(dispatch.Needs{Inbox: a.Inbox, Past: a.Inbox, Fire: a.Fire, Log: s.log,
			Now: s.clock}, t).Run(ctx)
	}}
}

// feedDuty returns the duty to tell muster's own events, as far as triggers wait for them.
func feedDuty(s *Server) election.Duty {
	a, q := s.site.arriving.needs, s.queue
	n := inner.Needs{Box: a.Inbox, Zones: q.Conn, Streams: q.Read.Zones, Tasks: q.Read.Tasks,
		Jobs: q.Read.Jobs, Facts: q.Hub.Facts, Versions: a.Versions, Wants: wants(s), Log: s.log,
		Now: s.clock}
	return election.Duty{Name: inner.Duty, Work: func(ctx context.Context, t *election.Term) error {
		return inner.New(n, t).Run(ctx)
	}}
}

// wants returns what tells for which of muster's own events a trigger waits.
func wants(s *Server) func(context.Context) func(kind string) bool {
	keeper := s.site.firer.Keeper
	return func(ctx context.Context) func(kind string) bool {
		set, err := keeper.Set(ctx)
		if err != nil || keeper.File() == nil && keeper.Complaint() != "" {
			return nil
		}
		return func(kind string) bool { return set.Wants(events.Own, kind) }
	}
}

// programsDuty returns the duty to run the programs that print events.
func programsDuty(s *Server) election.Duty {
	a := s.site.arriving
	n := programs.Needs{Sources: a.keeper.Sources, Inbox: a.needs.Inbox, Log: s.log, Now: s.clock}
	return election.Duty{Name: programs.Duty, Work: func(ctx context.Context, _ *election.Term) error {
		return programs.New(n).Run(ctx)
	}}
}

// outward returns the duties towards others: to work on their events, and to tell them what
// happened.
func outward(s *Server) (list []election.Duty) {
	if s.site.arriving.needs.Inbox != nil {
		list = append(list, eventDuty(s), programsDuty(s))
	}
	if a := s.site.arriving.needs; a.Inbox != nil && a.Versions != nil {
		list = append(list, feedDuty(s))
	}
	if s.site.telling.outbox != nil {
		list = append(list, s.heraldDuty())
	}
	return list
}
