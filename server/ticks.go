package server

import (
	"context"
	"errors"
	"strings"

	"muster/api"
	"muster/jobs"
	"muster/server/duties"
	"muster/server/fault"
	"muster/server/intake"
	"muster/windows"
)

// tickIntake makes the tasks of ticks.
type tickIntake struct{ to requests }

// PlanTick plans the task of a tick with the inventory and the runbooks of this moment.
func (i tickIntake) PlanTick(ctx context.Context, f duties.Firing) (
	put func(context.Context, jobs.TaskID) error, why string, err error) {
	of := f.Schedule
	p, wrong, err := i.to.submits.Tick(ctx, intake.Ask{Body: request(of.Entry), Operator: of.By,
		Proven: of.Proven, Schedule: of.Name, Tick: jobs.Time{Time: f.Tick}}, f.Offset)
	if err != nil || len(wrong) > 0 {
		return nil, words(wrong), err
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

// request returns what a schedule asks for, as a person would.
func request(e windows.Entry) api.Submit {
	return api.Submit{Runbook: e.Runbook, On: e.On, Args: e.Args, Expire: e.Expire,
		Priority: e.Priority,
		Manner:   api.Manner{Disruptive: e.Disruptive, Only: e.Only}, Supersedes: e.Supersedes,
		Rollout: jobs.AskOf(e.Rollout),
		// A host without an opening at a tick may have one at the next. A rule counts all hosts
		// that are selected, so it can leave none out: such a tick has no task, and says for whom.
		Timed: api.Timed{Window: e.Window == windows.WindowRequired, Expect: e.Expect,
			SkipClosed: e.Rollout == nil}}
}

// words returns mistakes in one line.
func words(wrong []error) string {
	var list []string
	for _, err := range wrong {
		var d *fault.Mistake
		if errors.As(err, &d) {
			list = append(list, strings.TrimPrefix(d.Location, "body.")+": "+d.Message)
			continue
		}
		list = append(list, err.Error())
	}
	return strings.ReplaceAll(strings.Join(list, "; "), "\n", "; ")
}
