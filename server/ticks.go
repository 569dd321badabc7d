package server

import (
	"context"

	"muster/jobs"
	"muster/server/duties"
	"muster/server/fault"
	"muster/server/intake"
	"muster/server/schedules"
)

// tickIntake makes the tasks of ticks.
type tickIntake struct{ to requests }

// PlanTick plans the task of a tick with the inventory and the runbooks of this moment.
func (i tickIntake) PlanTick(ctx context.Context, f duties.Firing) (
	put func(context.Context, jobs.TaskID) error, why string, err error) {
	of := f.Schedule
	if doubt := of.Doubt(); doubt != nil {
		return nil, "what Redis has of the schedule is not believed: " + doubt.Error(), nil
	}
	p, wrong, err := i.to.submits.Tick(ctx, intake.Ask{Body: schedules.Request(of.Entry),
		Operator: of.By,
		Proven:   of.Proven, Schedule: of.Name, Tick: jobs.Time{Time: f.Tick}}, f.Offset)
	if err != nil || len(wrong) > 0 {
		return nil, fault.Words(wrong), err
	}
	return func(ctx context.Context, id jobs.TaskID) error {
		p.Task.ID = id
		if err := i.to.entry.MayBegin(ctx); err != nil {
			return err
		}
		return i.to.entry.PutOnce(ctx, &p)
	}, "", nil
}

// newSchedules gives the duty to fire schedules what it works with.
func newSchedules(s *Server, t duties.Term) *duties.Schedules {
	q := s.queue
	d := &duties.Schedules{Ticks: q.Hub.Ticks, Book: q.Hub.Schedules, Tasks: q.Read.Tasks,
		Leads: q.Hub.Duties, Intake: tickIntake{s.intake}, Term: t, Who: s.who, Log: s.log, Now: s.clock}
	if s.history != nil {
		d.Past = s.history
	}
	return d
}
