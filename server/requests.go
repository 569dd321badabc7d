package server

import (
	"context"

	"muster/jobs"
	"muster/server/foresight"
	"muster/server/intake"
	"muster/server/waits"
	"muster/server/web"
	"muster/trust"
)

// requests has the ways on which a request becomes a task.
type requests struct {
	submits  *intake.Intake // and what schedules and chains begin
	retries  *intake.Retries
	entry    *intake.Entry
	openings *intake.Openings
	specs    intake.ProvenSpecs
	forecast *foresight.Forecaster // of tasks that nobody has submitted
}

// newRequests gives the intake what it works with. The clock and the chance of the server may
// still be replaced.
func newRequests(s *Server, d Deps) requests {
	q, now := d.Queue, s.clock
	chance := func() uint16 { return s.chance() }
	book := s.calendar.Book
	advance := func(ctx context.Context, id jobs.TaskID) error { return s.chainDuty.Advance(ctx, id) }
	r := requests{
		openings: &intake.Openings{Book: book, Estimates: q.Hub.Estimates, Nodes: q.Hub.Nodes,
			Now: now},
		entry: &intake.Entry{MayBegin: s.mayBegin, Tasks: q.Read.Tasks, Pins: q.Blobs.Store,
			Sealer: d.SecretKeys, Signer: d.ServerKeys, Records: &trust.Records{}, Alerts: q.Conn,
			Submits: q.Submit.Submits, Aside: intake.Aside(s.cfg.Quarantine), Log: d.Log, Now: now,
			Chance: chance,
			Turn: intake.Turn{Lanes: q.Submit.Lanes, Puts: q.Submit.Puts,
				Advance: newLanes(s).Advance}},
	}
	r.specs = intake.ProvenSpecs{Specs: q.Read.Tasks, Orders: q.Submit.Signed, Signer: d.ServerKeys,
		Now: now}
	if signing := q.Hub.Times.Signing; signing != nil {
		r.entry.Times = signing.Since
	}
	if d.Audit.Scribe != nil {
		r.entry.Audit = d.Audit.Scribe
	}
	r.submits = &intake.Intake{Catalog: s.site.upkeep.runbooks.Catalog, Stock: s.stock, Look: s.look,
		Files:  intake.Files{Blobs: q.Blobs.Store, Max: s.cfg.Blobs.Max},
		Sealer: d.SecretKeys, Openings: r.openings, Entry: r.entry, Tasks: q.Read.Tasks,
		Holding: q.Submit.Submits, Chains: q.Hub.Chains, Advance: advance, Durable: d.Queue.Durable,
		Now: now, Chance: chance}
	if d.History != nil {
		r.submits.Past = d.History
	}
	r.retries = &intake.Retries{Look: s.look, Sealer: d.SecretKeys, Openings: r.openings,
		Entry: r.entry, Tasks: q.Read.Tasks, Specs: r.specs, Jobs: q.Read.Jobs,
		Retrying: q.Submit.Retries,
		Durable:  d.Queue.Durable, Now: now, Await: web.Waiter{Stopping: s.site.stopping}.Await}
	overload := s.cfg.Overload
	if overload == (jobs.Overload{}) {
		overload = jobs.DefaultOverload()
	}
	r.forecast = &foresight.Forecaster{Tasks: q.Read.Tasks, Jobs: q.Read.Jobs, Lanes: q.Submit.Lined,
		Seen: s.site.tasks.Seen, Estimates: q.Hub.Estimates, Stock: s.stock, Book: book,
		Slots: r.openings.Slots, Staff: q.Hub.Nodes.Staff,
		Overload: overload, Now: now}
	return r
}

// mayBegin refuses new work that could not be done as was agreed, and makes sure that Redis has
// the inventory with which it was planned: jobs whose host Redis does not know fail.
func (s *Server) mayBegin(ctx context.Context) error {
	if err := s.agreed.Known(ctx); err != nil {
		return err
	}
	return web.Problem(s.stock.Compare(ctx))
}

// newWaits gives the reader of reasons what it works with.
func newWaits(s *Server) *waits.Reader {
	q := s.queue
	return &waits.Reader{Explaining: q.Read.Jobs, Deferring: q.Read.Waits, Tasks: q.Read.Tasks,
		Jobs: q.Read.Jobs, Estimates: q.Hub.Estimates, Stock: s.stock, Now: s.clock,
		Book: s.calendar.Book}
}
