package lanes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"muster/jobs"
	"muster/jobs/lane"
	"muster/jobs/queue"
)

// Checks submits checks of tasks of mode pipeline.
type Checks interface {
	NewID() jobs.TaskID
	// CheckTask submits the check of task of as task id, once, and returns why it cannot be, which
	// no later try changes; an error may be gone at the next try.
	CheckTask(ctx context.Context, id, of jobs.TaskID, note string) (why string, err error)
}

// name gives a task that needs a check the id of that. The id is in the lane before the check is
// submitted, so two servers submit one check.
func (d *Lanes) name(e *lane.Entry, checks []lane.Check) {
	for _, c := range checks {
		if c.Task == e.Task && !c.Again {
			e.Tried = lane.Tried{Check: d.Checks.NewID(), Behind: c.Behind}
		}
	}
}

// carryOutChecks submits the checks that tasks need, ends those that mean nothing any more, and
// cancels what does not begin.
func (d *Lanes) carryOutChecks(ctx context.Context, key string, p lane.Piped,
	now []lane.Entry) error {
	var errs []error
	cancel := func(id jobs.TaskID, format string, args ...any) {
		note := fmt.Sprintf(format, args...) + " (lane " + lane.Plain(key) + ")"
		if _, err := d.Cancels.Cancel(ctx, id, note); err != nil && !errors.Is(err, queue.ErrNotFound) {
			errs = append(errs, err)
			return
		}
		d.Log.Info("a lane has cancelled a task", "lane", key, "task", id, "why", note)
	}
	checkOf := func(task jobs.TaskID) jobs.TaskID {
		if i := slices.IndexFunc(now, func(e lane.Entry) bool { return e.Task == task }); i >= 0 {
			return now[i].Check
		}
		return ""
	}
	for _, id := range p.Remove {
		cancel(id, "its rule has stopped it, and the tasks behind it go on without its other hosts")
	}
	for _, id := range p.Drop {
		cancel(id, "its check, task %s, did not succeed on all hosts", checkOf(id))
	}
	for _, c := range p.Check {
		if c.Old != "" {
			cancel(c.Old, "a task before task %s has ended, so that one is checked again", c.Task)
		}
		id := checkOf(c.Task)
		if id == "" {
			continue // it has left the lane
		}
		why, err := d.Checks.CheckTask(ctx, id, c.Task, noteOf(c, key))
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("check of task %s: %w", c.Task, err))
		case why != "":
			cancel(c.Task, "it cannot be checked: %s", why)
		default:
			d.Log.Info("a task of a lane is checked", "lane", key, "task", c.Task, "check", id,
				"behind", c.Behind)
		}
	}
	return errors.Join(errs...)
}

func noteOf(c lane.Check, key string) string {
	note := fmt.Sprintf("check of task %s in lane %s", c.Task, lane.Plain(key))
	if c.Behind != "" {
		return note + ", while it waits for " + c.Behind
	}
	return note
}
