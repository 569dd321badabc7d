package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"muster/fleet"
	"muster/history/outbox"
	"muster/history/outcomes"
	"muster/jobs"
	"muster/jobs/outliers"
	"muster/jobs/queue/hub"
	"muster/server/anchor"
	"muster/server/depth"
	"muster/server/duties"
	"muster/server/election"
	"muster/server/historian"
	"muster/server/intake"
	"muster/server/nodes"
	"muster/server/state"
	"muster/server/tasks"
	"muster/windows"
)

// zonesEvery is the time between two times at which a server names its time zone data.
const zonesEvery = 10 * time.Second

// auditEvery is the time between two times at which a server looks after its spool.
const auditEvery = 5 * time.Second

// elected returns the duties that one of the servers has.
func (s *Server) elected() []election.Duty {
	elected := []election.Duty{
		{Name: duties.TendDuty, Work: func(ctx context.Context, _ *election.Term) error {
			return s.tend.Run(ctx)
		}},
		{Name: hub.DutySchedules, Work: func(ctx context.Context, t *election.Term) error {
			return newSchedules(s, t).Run(ctx)
		}},
		laneDuty(s),
		triggersDuty(s),
		repositoriesDuty(s),
		{Name: duties.WavesDuty, Work: func(ctx context.Context, _ *election.Term) error {
			return newWaves(s, s.chainDuty).Run(ctx)
		}},
	}
	elected = append(elected, election.Duty{Name: duties.OrdersDuty,
		Work: func(ctx context.Context, _ *election.Term) error {
			d := &duties.Renewal{Zones: s.queue.Conn, Orders: s.queue.Submit.Signed, Keys: s.site.keys,
				Log: s.log, Now: s.clock}
			duties.Repeat(ctx, s.log, "signed orders", duties.RenewEvery, d.RunOnce)
			return nil
		}})
	if s.history != nil {
		elected = append(elected, election.Duty{Name: historian.Duty,
			Work: func(ctx context.Context, t *election.Term) error {
				return historian.New(historianNeeds(s), t).Run(ctx)
			}})
		if s.cfg.Outliers.Window > 0 {
			elected = append(elected, outliersDuty(s))
		}
	}
	elected = append(elected, outward(s)...)
	if a := s.audit.Anchor; a != nil {
		elected = append(elected, election.Duty{Name: anchor.Duty,
			Work: func(ctx context.Context, _ *election.Term) error {
				defer a.Leave()
				duties.Repeat(ctx, s.log, "checkpoints of the audit log", anchor.Every, a.RunOnce)
				return nil
			}})
	}
	return elected
}

// duties does the work of a server that nobody has asked for until ctx is done.
// Every server follows the inventory; one of them has each of the other duties.
func (s *Server) duties(ctx context.Context, times *duties.Times) {
	candidate := election.Candidate{Votes: s.queue.Hub.Duties, Who: s.who, Log: s.log}
	var all sync.WaitGroup
	for _, d := range s.elected() {
		all.Go(func() { candidate.Stand(ctx, d) })
	}
	all.Go(func() {
		defer s.site.form.Leave(ctx)
		duties.Repeat(ctx, s.log, "form of data", state.FormEvery, s.site.form.RunOnce)
	})
	all.Go(func() {
		duties.Repeat(ctx, s.log, "time zone data", zonesEvery, func(ctx context.Context) error {
			_, err := s.health().SayZones(ctx)
			return err
		})
	})
	all.Go(func() {
		duties.Repeat(ctx, s.log, "depth of the queues", depth.Every, s.site.upkeep.depths.RunOnce)
	})
	all.Go(func() {
		duties.Repeat(ctx, s.log, "the timetable in force", duties.TimesEvery, times.RunOnce)
	})
	all.Go(func() { s.site.upkeep.tracer.Run(ctx) })
	if s.audit.Scribe != nil {
		all.Go(func() { duties.Repeat(ctx, s.log, "audit log", auditEvery, s.audit.Scribe.Tend) })
	}
	all.Go(func() {
		duties.Repeat(ctx, s.log, "inventory", zonesEvery, func(ctx context.Context) error {
			if err := s.stock.Compare(ctx); err != nil {
				return err
			}
			if text := s.stock.Complaint(); text != "" {
				return errors.New(text)
			}
			return nil
		})
	})
	all.Wait()
}

// newTimes gives the duty to vouch for the timetable what it works with.
func newTimes(s *Server) *duties.Times {
	d := &duties.Times{}
	if signing := s.queue.Hub.Times.Signing; signing != nil {
		d.Timetable = signing
	}
	if s.history != nil {
		d.Kept = func(ctx context.Context) (int64, error) {
			kept, err := s.history.Agreed(ctx)
			return kept[jobs.AgreedWindows].Mark, err
		}
	}
	return d
}

// newTend gives the duty to care for the queue what it works with.
func newTend(s *Server) *duties.Tend {
	q := s.queue
	return &duties.Tend{Zones: q.Conn, Care: q.Care.Zones, Staff: q.Hub.Nodes,
		Excerpts: q.Hub.Times.Excerpts,
		Blobs:    q.Blobs.Care, Grace: s.cfg.Blobs.Grace, Log: s.log,
		Facts: &duties.Facts{Tasks: q.Read.Tasks, Jobs: q.Read.Jobs, Store: q.Hub.Facts,
			Outputs: tasks.Groups{Said: q.Read.Outputs, Stock: s.stock}.Outputs, Stock: inForce(s),
			Parts: intake.PartsKept, Log: s.log, Now: s.clock},
		Moves: &duties.Mover{Tasks: q.Read.Tasks, Jobs: q.Read.Jobs, Moves: q.Hub.Moves,
			Estimates: q.Hub.Estimates, Cancels: q.Submit.Cancels, Schedules: q.Hub.Schedules,
			Log: s.log, Now: s.clock,
			Book: func(ctx context.Context) (int64, *windows.Book, error) {
				table, book, err := s.calendar.Read(ctx)
				return table.Version, book, err
			},
			Stock: func() (*fleet.Inventory, error) {
				st, err := s.stock.Get()
				if err != nil {
					return nil, err
				}
				return st.Inventory, nil
			}},
		Tally: &duties.Tally{Tasks: q.Read.Tasks, Meters: s.meters}}
}

// clock returns the time of the server's clock, which tests may replace after New.
func (s *Server) clock() time.Time { return s.now() }

// inForce returns a function that returns the inventory in force with its version; nil: there is
// none.
func inForce(s *Server) func() (*fleet.Inventory, string) {
	return func() (*fleet.Inventory, string) {
		if now := s.stock.Now(); now != nil {
			return now.Inventory, now.Version
		}
		return nil, ""
	}
}

// historianNeeds gives a historian what it works with.
func historianNeeds(s *Server) historian.Needs {
	q, h := s.queue, s.history
	return historian.Needs{
		Queue: historian.Queue{Zones: q.Conn, Tasks: q.Read.Tasks, Jobs: q.Read.Jobs,
			Endings: q.Read.Endings, Outputs: q.Read.Outputs, Events: q.Read.Zones, Trimming: q.Care.History,
			Members: q.Hub.Members, Outages: q.Care.Outages},
		Writer: h, Past: h, Estimates: historian.Estimates{Hub: q.Hub.Estimates, Past: h},
		Guard: &historian.Guard{Agreed: q.Hub.Agreed, Copies: h, Debts: q.Care.Debts,
			Recall: q.Care.Recall, Past: h, Log: s.log, Now: s.clock},
		Proofs: historian.Proofs{Trust: s.site.trust, Alerts: q.Conn, Doubts: s.meters.NotProven},
		Counting: historian.Counting{Meters: s.meters.Work, Deferred: outbox.Deferred(h),
			Stored: s.site.upkeep.tracer.Hear},
		Stock: inForce(s), Keep: s.cfg.HistoryKeep, Trouble: &s.trouble, Log: s.log, Now: s.clock}
}

// who returns the name of this server, for people who ask which one has a duty.
func (s *Server) who() string {
	if s.cfg.Name == "" {
		return s.Addr()
	}
	return s.cfg.Name + "@" + s.Addr()
}

// known returns the name of a server that listens, and nothing before.
func (s *Server) known() string {
	if s.Addr() == "" {
		return ""
	}
	return s.who()
}

// outliersDuty sets nodes aside whose jobs fail much more often than those of others.
func outliersDuty(s *Server) election.Duty {
	work := func(ctx context.Context, _ *election.Term) error {
		o := &nodes.Outlying{Policy: s.cfg.Outliers, Queue: s.queue.Hub.Nodes, Keys: s.site.keys,
			Log: s.log, Now: s.clock,
			Counts: func(ctx context.Context, from, begun time.Time) ([]outliers.Count, error) {
				return outcomes.Since(ctx, s.history, from, begun)
			}}
		duties.Repeat(ctx, s.log, "nodes whose jobs fail", nodes.OutliersEvery, o.RunOnce)
		return nil
	}
	return election.Duty{Name: nodes.OutliersDuty, Work: work}
}
