package server

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/submit"
	"muster/server/stock"
	"muster/windows"
)

// Moves are new appointments of jobs that wait, and up to which version of the timetable
// they were made.
type Moves interface {
	Appoint(ctx context.Context, zone string, id jobs.TaskID, moves []jobs.Move) (int, error)
	MovedFor(ctx context.Context) (int64, error)
	SetMovedFor(ctx context.Context, version int64) error
}

// soon is how near an appointment is left alone: whoever takes the job asks again.
const soon = 2 * time.Second

// moveAppointments makes the appointments of waiting jobs fit what is agreed, if that has
// changed. Nothing rests on it: a job that comes at a wrong time is deferred. But one
// whose window was brought forward would miss it. It may be done twice.
func (s *Server) moveAppointments(ctx context.Context) error {
	moved, err := s.queue.Hub.Moves.MovedFor(ctx)
	if err != nil {
		return err
	}
	table, book, err := s.book(ctx)
	if err != nil || table.Version == moved {
		return err
	}
	st, err := s.stock.Get()
	if err != nil {
		return err
	}
	tasks, err := s.queue.Read.Tasks.Tasks(ctx, openMax)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if t.State == jobs.TaskEnded || t.State == jobs.TaskSubmitting {
			continue
		}
		m := mover{Server: s, book: book, stock: st, task: t}
		if err := m.move(ctx); err != nil && !errors.Is(err, queue.ErrNotFound) {
			return err
		}
	}
	return s.queue.Hub.Moves.SetMovedFor(ctx, table.Version)
}

// openMax is how many tasks are looked at: as many as lists keep.
const openMax = 10_000

// A mover looks at the appointments of one task.
type mover struct {
	*Server
	book  *windows.Book
	stock *stock.Stock
	task  jobs.TaskInfo
	spec  jobs.Spec
	turns map[string]*submit.Turns // by zone
}

func (m *mover) move(ctx context.Context) error {
	var err error
	if m.spec, err = m.queue.Read.Tasks.Spec(ctx, m.task.Task); err != nil {
		return err
	}
	return m.queue.Read.Jobs.EachJob(ctx, m.task.Task, 0, jobsMax, func(list []jobs.JobInfo) error {
		now := m.now()
		waits := slices.DeleteFunc(list, func(j jobs.JobInfo) bool {
			deferred := j.State == jobs.Deferred || m.spec.Window && j.State == jobs.Queued
			return !deferred || j.Next.Before(now.Add(soon))
		})
		if len(waits) == 0 {
			return nil
		}
		return m.moveJobs(ctx, waits, now)
	})
}

// moveJobs looks at some jobs that wait.
func (m *mover) moveJobs(ctx context.Context, list []jobs.JobInfo, now time.Time) error {
	hosts := make(map[string]fleet.Host, len(list))
	var fields []string
	for _, j := range list {
		if h, ok := m.stock.Host(j.Host); ok {
			hosts[j.Host] = h
			fields = append(fields, jobs.EstimateField(m.spec.Work(), h))
		}
	}
	slices.Sort(fields)
	estimates, err := m.queue.Hub.Estimates.Estimates(ctx, slices.Compact(fields))
	if err != nil {
		return err
	}
	moves, cancel := map[string][]jobs.Move{}, map[string][]jobs.ID{}
	for _, j := range list {
		h, ok := hosts[j.Host]
		if !ok {
			continue
		}
		takes := cmp.Or(estimates[jobs.EstimateField(m.spec.Work(), h)].P90, m.spec.Expect)
		to := m.book.Move(m.waiting(h, j, takes), now)
		switch {
		case to.Cancel != "":
			cancel[to.Cancel] = append(cancel[to.Cancel], j.ID)
		case !to.To.IsZero():
			moves[h.Zone] = append(moves[h.Zone], jobs.Move{Host: j.Host,
				Was: jobs.MicrosOf(j.Next.Time), To: m.turn(h.Zone).Next(jobs.MicrosOf(to.To))})
		}
	}
	return m.carryOut(ctx, moves, cancel)
}

func (m *mover) waiting(h fleet.Host, j jobs.JobInfo, takes time.Duration) windows.Waiting {
	// Openings begin at whole seconds; what is behind is its place among those of its task.
	at := j.Next.Truncate(time.Second)
	w := windows.Waiting{Place: jobs.Place(h), At: at, Work: windows.Work{
		Runbook: m.spec.Runbook, Window: m.spec.Window, Reserve: m.spec.Reserve,
		Override: m.spec.Override, Estimate: takes}, From: m.spec.After.Time()}
	if m.spec.Schedule != "" && j.State == jobs.Queued {
		w.From = j.Next.Time // its place within the jitter is its own: never before it
	}
	return w
}

// turn is that of the next job of the task in a zone.
func (m *mover) turn(zone string) *submit.Turns {
	if m.turns == nil {
		m.turns = map[string]*submit.Turns{}
	}
	if m.turns[zone] == nil {
		m.turns[zone] = &submit.Turns{Priority: m.task.Priority}
	}
	return m.turns[zone]
}

func (m *mover) carryOut(ctx context.Context, moves map[string][]jobs.Move,
	cancel map[string][]jobs.ID) error {
	for zone, list := range moves {
		n, err := m.queue.Hub.Moves.Appoint(ctx, zone, m.task.Task, list)
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			return err
		}
		m.log.Info("windows have changed: jobs were moved", "task", m.task.Task, "zone", zone, "jobs", n)
	}
	for why, ids := range cancel {
		_, err := m.queue.Submit.Cancels.CancelJobs(ctx, ids, "windows have changed: "+why)
		if err != nil {
			return err
		}
		m.log.Info("windows have changed: jobs were cancelled", "task", m.task.Task, "jobs", len(ids))
	}
	return nil
}
