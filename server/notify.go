package server

import (
	"context"
	"slices"
	"strings"

	"muster/history/outbox"
	"muster/notify"
	"muster/server/election"
	"muster/server/entries"
	"muster/server/herald"
	"muster/server/metrics"
	"muster/server/notices"
)

// telling has the notifications of a server.
type telling struct {
	outbox *outbox.Outbox // nil: there is no history, or nobody has said where rules are
	keeper *herald.Keeper
}

// newTelling reads the rules once. A mistake in them keeps no server from its work: health says it.
func newTelling(s *Server, d Deps) telling {
	if d.Notify == nil {
		d.Notify = func() (*notify.Rules, error) { return nil, nil }
	}
	t := telling{keeper: herald.NewKeeper(d.Notify,
		entries.Notices{Follower: s.site.upkeep.follower}.Applied, s.log)}
	if t.keeper.File(); d.History != nil {
		t.outbox = outbox.New(d.History, t.keeper.Wanted)
	}
	return t
}

// heraldDuty returns the duty to send notifications.
func (s *Server) heraldDuty() election.Duty {
	q := s.queue
	needs := herald.Needs{Outbox: s.site.telling.outbox, Keeper: s.site.telling.keeper,
		Base: s.cfg.URL,
		Log:  s.log, Now: s.clock, Watch: herald.Watch{Nodes: q.Hub.Nodes.Nodes,
			Staff: q.Hub.Nodes.Staff, Schedules: q.Hub.Schedules.Schedules,
			Held: q.Submit.Submits.HeldTasks, Task: q.Read.Tasks.Task,
			Repositories: s.site.upkeep.repositories.Troubles}}
	if s.cfg.NoPages {
		needs.Base = ""
	}
	return election.Duty{Name: herald.Duty, Work: func(ctx context.Context, t *election.Term) error {
		return herald.New(needs, t).Run(ctx)
	}}
}

// notices returns the resource of notifications.
func (s *Server) notices() notices.Routes {
	return notices.Routes{Outbox: s.site.telling.outbox, Keeper: s.site.telling.keeper,
		Sees: s.site.tasks.Sees,
		Log:  s.log, Now: s.clock}
}

// untold says what is wrong with notifications, triggers and traces; empty: nothing.
func (s *Server) untold(ctx context.Context) string {
	text := herald.Words(ctx, s.site.telling.outbox, s.site.telling.keeper, s.clock())
	all := []string{text, s.site.firer.Keeper.Words(), s.site.upkeep.follower.Words(),
		s.site.upkeep.runbooks.Words(), s.site.upkeep.tracer.Words()}
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "; ")
}

// toldGauges returns the numbers of notifications.
func (s *Server) toldGauges(ctx context.Context) *metrics.Notify {
	return herald.Gauges(ctx, s.site.telling.outbox, s.site.telling.keeper, s.clock())
}
