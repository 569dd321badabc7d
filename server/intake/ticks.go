package intake

import (
	"context"

	"muster/jobs"
	"muster/server/duties"
	"muster/server/fault"
	"muster/server/schedules"
)

// Ticks makes the tasks of ticks.
type Ticks struct {
	Intake *Intake
	Entry  *Entry
}

// PlanTick plans the task of a tick with the inventory and the runbooks of this moment.
func (i Ticks) PlanTick(ctx context.Context, f duties.Firing) (
	put func(context.Context, jobs.TaskID) error, why string, err error) {
	of := f.Schedule
	if doubt := of.Doubt(); doubt != nil {
		return nil, "what Redis has of the schedule is not believed: " + doubt.Error(), nil
	}
	p, wrong, err := i.Intake.Tick(ctx, Ask{Body: schedules.Request(of.Entry), Operator: of.By,
		Proven: of.Proven, Schedule: of.Name, Tick: jobs.Time{Time: f.Tick}}, f.Offset)
	if err != nil || len(wrong) > 0 {
		return nil, fault.Words(wrong), err
	}
	return func(ctx context.Context, id jobs.TaskID) error {
		p.Task.ID = id
		if err := i.Entry.MayBegin(ctx); err != nil {
			return err
		}
		return i.Entry.PutOnce(ctx, &p)
	}, "", nil
}
