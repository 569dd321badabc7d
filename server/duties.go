package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"muster/fleet"
	"muster/jobs/queue/hub"
	"muster/server/election"
	"muster/server/historian"
)

// dutyEvery is how often a server does what must be done also where no master
// lives.
const dutyEvery = 10 * time.Second

// rarely is after how many rounds what is no hurry is done again.
const rarely = 30

// dutyTend is the duty of who looks after the queue.
const dutyTend = "tend"

// duties does the work of a server that nobody has asked for until ctx is done.
// Every server follows the inventory; the rest is done by the one that has the duty.
func (s *Server) duties(ctx context.Context) {
	elected := []election.Duty{
		{Name: dutyTend, Work: func(ctx context.Context, _ *election.Term) error {
			defer s.tally.forget()
			s.rounds(ctx, dutyTend, time.Tick(dutyEvery), s.tend)
			return nil
		}},
		{Name: hub.DutySchedules, Work: s.fire},
		{Name: dutyWaves, Work: func(ctx context.Context, _ *election.Term) error {
			s.rounds(ctx, dutyWaves, time.Tick(wavesEvery), func(ctx context.Context) error {
				return errors.Join(s.advance(ctx), s.advanceChains(ctx))
			})
			return nil
		}},
	}
	if s.history != nil {
		elected = append(elected, election.Duty{Name: historian.Duty,
			Work: func(ctx context.Context, t *election.Term) error {
				return historian.New(historianNeeds(s), t).Run(ctx)
			}})
	}
	candidate := election.Candidate{Votes: s.queue.Hub.Duties, Who: s.who, Log: s.log}
	var all sync.WaitGroup
	for _, d := range elected {
		all.Go(func() { candidate.Stand(ctx, d) })
	}
	all.Go(func() {
		s.rounds(ctx, "time zone data", time.Tick(dutyEvery), func(ctx context.Context) error {
			_, err := s.sayZones(ctx)
			return err
		})
	})
	all.Go(func() {
		s.rounds(ctx, "inventory", time.Tick(dutyEvery), func(ctx context.Context) error {
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

// rounds does something at once and with every tick, until ctx is done. What goes
// wrong is said once.
func (s *Server) rounds(ctx context.Context, what string, ticks <-chan time.Time,
	do func(context.Context) error) {
	said := ""
	for {
		trouble := ""
		if err := do(ctx); err != nil {
			trouble = err.Error()
		}
		switch {
		case ctx.Err() != nil:
			return
		case trouble != "" && trouble != said:
			s.log.Warn("duties", "of", what, "trouble", trouble)
		case trouble == "" && said != "":
			s.log.Info("duties", "of", what, "trouble", "over")
		}
		said = trouble
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

// tend is one round. It goes on with the other zones when one fails.
func (s *Server) tend(ctx context.Context) error {
	s.onDuty.Lock()
	defer s.onDuty.Unlock()
	zones, err := s.queue.Conn.Zones(ctx)
	if err != nil {
		return err
	}
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	for _, zone := range zones {
		note(s.queue.Care.Zones.Tend(ctx, zone))
	}
	s.tally.rounds++
	if s.tally.rounds%rarely == 1 {
		note(s.tendBlobs(ctx))
		note(s.forgetFacts(ctx))
	}
	note(s.queue.Hub.Nodes.NoteStaff(ctx))
	_, err = s.queue.Hub.Times.PutExcerpts(ctx)
	note(err)
	note(s.moveAppointments(ctx))
	note(s.tendFacts(ctx))
	note(s.tally.round(ctx))
	return first
}

// historianNeeds gives a historian what it works with.
func historianNeeds(s *Server) historian.Needs {
	q, h := s.queue, s.history
	return historian.Needs{
		Queue: historian.Queue{Zones: q.Conn, Tasks: q.Read.Tasks, Jobs: q.Read.Jobs,
			Outputs: q.Read.Outputs, Events: q.Read.Zones, Trimming: q.Care.History,
			Members: q.Hub.Members, Estimates: q.Hub.Estimates, Agreed: q.Hub.Agreed,
			Recall: q.Care.Recall, Outages: q.Care.Outages},
		Store: historian.Store{Writer: h, Tasks: h, Past: h, Estimates: h, Agreed: h},
		Stock: func() (*fleet.Inventory, string) {
			if st := s.stock.Now(); st != nil {
				return st.Inventory, st.Version
			}
			return nil, ""
		},
		Keep: s.cfg.HistoryKeep, Trouble: &s.trouble, Log: s.log, Now: s.now}
}

// who returns the name of this server, for people who ask which one has a duty.
func (s *Server) who() string {
	if s.cfg.Name == "" {
		return s.Addr()
	}
	return s.cfg.Name + "@" + s.Addr()
}
