package lanes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/jobs"
	"muster/jobs/lane"
	"muster/jobs/queue"
)

// Duty is the name of the duty that looks after all lanes.
const Duty = "lanes"

// Every is the time between two looks at all lanes.
const Every = time.Second

// Kept keeps which tasks are in which lane.
type Kept interface {
	LaneKeys(ctx context.Context) ([]string, error)
	Lane(ctx context.Context, key string) ([]lane.Entry, error)
	ChangeLane(ctx context.Context, key string,
		change func(list []lane.Entry) ([]lane.Entry, error)) error
}

// Tasks reads tasks. Its errors wrap queue.ErrNotFound.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	Spec(ctx context.Context, id jobs.TaskID) (jobs.Spec, error)
}

// Commits lets a task that was put begin. It may do so twice.
type Commits interface {
	CommitPut(ctx context.Context, t jobs.Task) error
}

// Cancels ends tasks.
type Cancels interface {
	Supersede(ctx context.Context, id, by jobs.TaskID, note string) error
	Cancel(ctx context.Context, id jobs.TaskID, note string) (jobs.Cancel, error)
}

// Lanes lets tasks begin.
type Lanes struct {
	Kept    Kept
	Tasks   Tasks
	Commits Commits
	Cancels Cancels
	Checks  Checks
	Log     hclog.Logger
	Now     func() time.Time
}

// RunOnce looks after all lanes.
func (d *Lanes) RunOnce(ctx context.Context) error {
	keys, err := d.Kept.LaneKeys(ctx)
	if err != nil {
		return err
	}
	var errs []error // a lane that cannot continue must not keep the others
	for _, key := range keys {
		if err := d.Advance(ctx, key); err != nil {
			errs = append(errs, fmt.Errorf("lane %s: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// look returns the tasks of a lane, and what became of them.
func (d *Lanes) look(ctx context.Context, key string) ([]lane.Entry, map[jobs.TaskID]jobs.TaskInfo,
	error) {
	list, err := d.Kept.Lane(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	infos := map[jobs.TaskID]jobs.TaskInfo{}
	for _, e := range list {
		for _, id := range []jobs.TaskID{e.Task, e.Check} {
			if id == "" {
				continue
			}
			t, err := d.Tasks.Task(ctx, id)
			switch {
			case errors.Is(err, queue.ErrNotFound):
			case err != nil:
				return nil, nil, err
			default:
				infos[id] = t
			}
		}
	}
	return list, infos, nil
}

// halfAfter is the time after which a check that is not committed counts as left half way: the
// lane submits it again, with its id.
const halfAfter = 10 * time.Second

func fatesOf(list []lane.Entry, infos map[jobs.TaskID]jobs.TaskInfo,
	now time.Time) map[jobs.TaskID]lane.Fate {
	fates := map[jobs.TaskID]lane.Fate{}
	for _, e := range list {
		if t, there := infos[e.Task]; there {
			fates[e.Task] = lane.FateOf(e, t)
		} else {
			fates[e.Task] = lane.Absent
		}
		t, there := infos[e.Check]
		half := t.State == jobs.TaskSubmitting && now.Sub(t.Submitted.Time) > halfAfter
		if there && !half {
			fates[e.Check] = lane.FateOf(lane.Entry{Task: e.Check, Put: true, Begun: true}, t)
		} else {
			fates[e.Check] = lane.Absent
		}
	}
	return fates
}

// Advance lets those tasks of a lane begin whose turn it is. Several servers may call it at a time:
// the place of a task says that it has begun before it begins, and only one server writes so by
// the state that it has read. A server that dies in between leaves the commit to the next one.
func (d *Lanes) Advance(ctx context.Context, key string) error {
	again, err := d.advance(ctx, key)
	if again && err == nil { // what was in the way has ended
		_, err = d.advance(ctx, key)
	}
	return err
}

// advance is one look at a lane. It reports whether it has ended something that was in the way.
func (d *Lanes) advance(ctx context.Context, key string) (again bool, err error) {
	before, infos, err := d.look(ctx, key)
	if err != nil {
		return false, err
	}
	fates := fatesOf(before, infos, d.Now())
	var next lane.Next
	var begun []jobs.TaskID
	var after []lane.Entry // the lane as it is then
	err = d.Kept.ChangeLane(ctx, key, func(list []lane.Entry) ([]lane.Entry, error) {
		known := asSeen(list, before)
		next, begun = lane.Decide(known, fates, d.Now()), nil
		for i := range list {
			if slices.Contains(next.Begin, list[i].Task) {
				list[i].Begun = true
			}
			list[i].Failed = list[i].Failed || slices.Contains(next.Failed, list[i].Task)
			list[i].Over = list[i].Over || slices.Contains(next.Supersede, list[i].Task)
			d.name(&list[i], next.Check)
			if list[i].Begun && fates[list[i].Task] == lane.Living {
				begun = append(begun, list[i].Task)
			}
		}
		list = slices.DeleteFunc(list, func(e lane.Entry) bool {
			return slices.Contains(next.Forget, e.Task)
		})
		after = list
		return list, nil
	})
	if err != nil {
		return false, err
	}
	again = len(next.Remove)+len(next.Drop) > 0
	return again, errors.Join(d.carryOut(ctx, key, next, begun, infos),
		d.carryOutChecks(ctx, key, next.Piped, after))
}

// asSeen returns the first entries that are as they were at the look. The look says nothing of an
// entry that is new, or was put or checked since: those behind it wait for the next look.
func asSeen(list, before []lane.Entry) []lane.Entry {
	for i, e := range list {
		at := slices.IndexFunc(before, func(o lane.Entry) bool { return o.Task == e.Task })
		if at < 0 || before[at].Put != e.Put || before[at].Tried != e.Tried {
			if slices.ContainsFunc(list[i:], func(o lane.Entry) bool { return o.Begun }) {
				return nil // it may run beside one of the first
			}
			return list[:i]
		}
	}
	return list
}

// carryOut commits what has begun, and ends what is superseded.
func (d *Lanes) carryOut(ctx context.Context, key string, next lane.Next, begun []jobs.TaskID,
	infos map[jobs.TaskID]jobs.TaskInfo) error {
	var errs []error
	for _, id := range begun {
		if infos[id].State != jobs.TaskSubmitting {
			continue
		}
		spec, err := d.Tasks.Spec(ctx, id)
		if err == nil {
			err = d.Commits.CommitPut(ctx, jobs.Task{ID: id, Spec: spec})
		}
		if err != nil && !errors.Is(err, queue.ErrCancelled) && !errors.Is(err, queue.ErrNotFound) {
			errs = append(errs, err)
			continue
		}
		d.Log.Info("task begins in its lane", "lane", key, "task", id)
	}
	for _, id := range next.Supersede {
		note := fmt.Sprintf("superseded by task %s in lane %s", next.Newest, lane.Plain(key))
		if err := d.Cancels.Supersede(ctx, id, next.Newest, note); err != nil &&
			!errors.Is(err, queue.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
