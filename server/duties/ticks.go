package duties

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/windows"
)

// ResultMax bounds the reason why a tick has no task, in bytes.
const ResultMax = 500

// makeTasks makes tasks of the pending ticks of a schedule, and takes each off.
func (f *Schedules) makeTasks(ctx context.Context, p *planned) error {
	for len(p.kept.Ticks.Pending) > 0 {
		fired, err := f.makeTask(ctx, p, p.kept.Ticks.Pending[0].Time)
		if err != nil {
			return fmt.Errorf("schedule %s: tick %s: %w", p.kept.Name, p.kept.Ticks.Pending[0], err)
		}
		next, err := f.Ticks.Tick(ctx, f.Term.Number(), p.kept, p.kept.Ticks.Done(fired))
		if err != nil {
			return err
		}
		p.kept = next
		if fired.Refused {
			f.Log.Warn("schedule: a tick has no task", "schedule", p.kept.Name, "tick", fired.Tick,
				"why", fired.Result)
			continue
		}
		f.Log.Info("schedule fired", "schedule", p.kept.Name, "tick", fired.Tick, "task", fired.Task,
			"runbook", p.kept.Entry.Runbook, "on", wording.Clip(p.kept.Entry.On),
			"operator", p.kept.By, "proven", p.kept.Proven)
	}
	return nil
}

const submitted = "submitted"

// makeTask makes the task of a tick, unless it is there. After an error the tick stays pending.
func (f *Schedules) makeTask(ctx context.Context, p *planned, tick time.Time) (jobs.Fired, error) {
	fired := jobs.Fired{Tick: jobs.Time{Time: tick}, Task: p.kept.Ticks.Task, Refused: true}
	terms := jobs.Terms{Schedule: p.kept.Name, Tick: fired.Tick}
	for salt := range jobs.TickTries {
		id := jobs.TickID(p.kept.Name, tick, salt)
		is, err := f.find(ctx, id, terms)
		switch {
		case err != nil:
			return fired, err
		case is == idDone:
			return jobs.Fired{Tick: fired.Tick, Task: id, Result: submitted}, nil
		case is == idTaken:
			continue
		}
		if why, err := f.overlaps(ctx, p, tick); err != nil || why != "" {
			fired.Result = why
			return fired, err
		}
		put, why, err := f.plan(ctx, p, tick)
		if err != nil {
			return fired, err
		}
		if why != "" {
			fired.Result = wording.ClipTo(why, ResultMax)
			return fired, nil
		}
		if !f.Term.Trusted() {
			return fired, queue.ErrDeposed
		}
		switch err = put(ctx, id); {
		case err == nil:
			return jobs.Fired{Tick: fired.Tick, Task: id, Result: submitted}, nil
		case errors.Is(err, jobs.ErrNoBlob):
			fired.Result = wording.ClipTo(err.Error(), ResultMax)
			return fired, nil
		case errors.Is(err, queue.ErrCancelled):
			continue // it was given up before anybody could list it
		case !errors.Is(err, queue.ErrConflict):
			return fired, err
		}
		if done, err := f.conflict(ctx, id, terms); err != nil || done {
			return jobs.Fired{Tick: fired.Tick, Task: id, Result: submitted}, err
		}
	}
	fired.Result = "other tasks have all the ids that this tick could have"
	return fired, nil
}

// plan plans the task of a tick.
func (f *Schedules) plan(ctx context.Context, p *planned, tick time.Time) (
	put func(context.Context, jobs.TaskID) error, why string, err error) {
	one := Firing{Schedule: p.kept, Tick: tick}
	if p.times.Jitter > 0 {
		one.Offset = p.times.Offset
	}
	return f.Intake.PlanTick(ctx, one)
}

// use is the use of an id that a tick could have.
type use int

const (
	idFree  use = iota // or the tick's own, submitted in part
	idTaken            // another task's, or given up
	idDone             // the tick's own task
)

func (f *Schedules) find(ctx context.Context, id jobs.TaskID, of jobs.Terms) (use, error) {
	t, err := f.Tasks.Task(ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return f.findPast(ctx, id, of), nil
	case err != nil:
		return idFree, err
	case t.Schedule != of.Schedule || !t.Tick.Equal(of.Tick.Time):
		return idTaken, nil
	case t.CancelledInSubmit:
		return idTaken, nil
	case t.State != jobs.TaskSubmitting:
		return idDone, nil
	case t.Cancelled != "":
		return idTaken, nil
	}
	return idFree, nil
}

// lateTick is the age from which on a tick may have had its task already, in a Redis that has
// forgotten it since.
const lateTick = 5 * time.Second

// findPast is find for a task that Redis does not know. A history that is away stops nothing.
func (f *Schedules) findPast(ctx context.Context, id jobs.TaskID, of jobs.Terms) use {
	if f.Past == nil || f.Now().Sub(of.Tick.Time) < lateTick {
		return idFree
	}
	t, err := f.Past.Task(ctx, id)
	switch {
	case err != nil:
		return idFree
	case t.Schedule == of.Schedule && t.Tick.Equal(of.Tick.Time):
		return idDone
	}
	return idTaken
}

// conflict deals with an id under which something else was submitted, and reports whether the
// tick has its task after all. An earlier leader may have submitted this tick in part, with other
// hosts: conflict gives that up, so that the earlier leader cannot complete it any more, and the
// tick continues under another id.
func (f *Schedules) conflict(ctx context.Context, id jobs.TaskID, of jobs.Terms) (done bool,
	err error) {
	t, err := f.Leads.Lead(ctx, hub.DutySchedules, f.Who(), f.Term.Number())
	if err != nil {
		return false, err
	}
	if !t.Mine || t.Number != f.Term.Number() {
		return false, queue.ErrDeposed
	}
	const why = "submitted in part by a server that is gone"
	if _, err := f.Ticks.Abandon(ctx, id, of, why); err != nil {
		return false, err
	}
	is, err := f.find(ctx, id, of)
	return is == idDone, err
}

// overlaps returns the reason to leave out a tick; empty: there is none.
func (f *Schedules) overlaps(ctx context.Context, p *planned, tick time.Time) (string, error) {
	if p.kept.Overlap != windows.OverlapForbid || p.kept.Ticks.Task == "" {
		return "", nil
	}
	t, err := f.Tasks.Task(ctx, p.kept.Ticks.Task)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case t.State == jobs.TaskEnded || t.Tick.Equal(tick):
		return "", nil
	}
	return fmt.Sprintf("overlap: forbid, and task %s of %s is %s", t.Task, t.Tick, t.State), nil
}
