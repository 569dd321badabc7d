package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"muster/history"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/web"
)

// finder reads tasks and jobs: as Redis knows them or, where that has forgotten them, as history
// does.
type finder struct {
	read    Reads
	history *history.Store // nil: none
}

// at is the task that a path names, as taskInfo is; the error is ready to be answered.
func (f finder) at(ctx context.Context, text string) (t jobs.TaskInfo, past bool, err error) {
	id, err := jobs.ParseTaskID(text)
	if err != nil {
		return t, false, web.Refusal(web.Mistakes("path.task", err))
	}
	t, past, err = f.task(ctx, id)
	return t, past, web.Problem(err)
}

// task is a task as Redis knows it, or, where that has forgotten its jobs, as
// history does; past says so.
func (f finder) task(ctx context.Context, id jobs.TaskID) (t jobs.TaskInfo, past bool,
	err error) {
	t, err = f.read.Tasks.Task(ctx, id)
	missing := errors.Is(err, queue.ErrNotFound)
	if f.history == nil || err != nil && !missing ||
		!missing && (t.Total > 0 || t.State == jobs.TaskSubmitting) {
		return t, false, err
	}
	was, failed := f.history.Task(ctx, id)
	switch {
	case failed == nil:
		was.Forgotten = was.State != jobs.TaskEnded
		return was, true, nil
	case errors.Is(failed, history.ErrNotFound):
		return t, false, err
	case missing:
		return t, false, failed // it may be there
	}
	return t, false, nil
}

// pastJobs are the jobs of a task as history has them, by host.
func (f finder) pastJobs(ctx context.Context, id jobs.TaskID) ([]jobs.JobInfo, error) {
	r, err := f.history.Report(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]jobs.JobInfo, len(r.Jobs))
	for i, j := range r.Jobs {
		out[i] = j.JobInfo
	}
	return out, nil
}

// orPast is a job as history has it, if Redis has forgotten it.
func (f finder) orPast(ctx context.Context, id jobs.ID, err error) (jobs.JobInfo, error) {
	if f.history == nil || !errors.Is(err, queue.ErrNotFound) {
		return jobs.JobInfo{}, err
	}
	j, failed := f.history.Job(ctx, id)
	if errors.Is(failed, history.ErrNotFound) {
		return jobs.JobInfo{}, err
	}
	return j.JobInfo, failed
}

// gone is the answer where Redis does not know a task, or a job of it: what history knows of
// a task that Redis has forgotten. Other errors are answered as they are.
func (f finder) gone(ctx context.Context, id jobs.TaskID, err error) error {
	if !errors.Is(err, queue.ErrNotFound) {
		return web.Problem(err)
	}
	t, past, failed := f.task(ctx, id)
	switch {
	case failed != nil, !past: // of one that Redis knows it is the job that is not there
		return web.Problem(err)
	case !t.Forgotten:
		when := "has ended" // the last that was heard of it does not say when
		if !t.Finished.IsZero() {
			when = "ended at " + t.Finished.String()
		}
		return huma.Error404NotFound(fmt.Sprintf("%s: the task %s, and Redis keeps no more of it; "+
			"history does: `muster task %s`", err, when, id))
	}
	return huma.Error404NotFound(fmt.Sprintf("%s: the task was forgotten by Redis before it ended; "+
		"%d of its %d jobs are known to have ended: `muster task %s`; what became of the others is not "+
		"known, and no more will come of them", err, t.Outcomes.Sum(), t.Total, id))
}

// eachJob gives the jobs of a task to f, from Redis or, where that has forgotten them,
// from history.
func (f finder) eachJob(ctx context.Context, id jobs.TaskID, from, most int,
	each func([]jobs.JobInfo) error) error {
	_, past, err := f.task(ctx, id)
	if err != nil {
		return err
	}
	if !past {
		return f.read.Jobs.EachJob(ctx, id, from, most, each)
	}
	list, err := f.pastJobs(ctx, id)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(list[min(from, len(list)):], max(most, 1)) {
		if err := each(part); err != nil {
			return err
		}
	}
	return nil
}
