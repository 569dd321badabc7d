package tasks

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

// A Finder reads tasks and jobs from Redis or, if Redis has forgotten them, from history.
type Finder struct {
	Tasks   Tasks
	Jobs    Jobs
	History *history.Store // nil: none
}

// At is Task for the id in a path. Its error is ready to be answered.
func (f Finder) At(ctx context.Context, text string) (t jobs.TaskInfo, past bool, err error) {
	id, err := jobs.ParseTaskID(text)
	if err != nil {
		return t, false, web.Refusal(web.Mistakes("path.task", err))
	}
	t, past, err = f.Task(ctx, id)
	return t, past, web.Problem(err)
}

// Task returns a task from Redis or, if Redis has forgotten its jobs, from history; past reports
// the latter.
func (f Finder) Task(ctx context.Context, id jobs.TaskID) (t jobs.TaskInfo, past bool,
	err error) {
	t, err = f.Tasks.Task(ctx, id)
	missing := errors.Is(err, queue.ErrNotFound)
	if f.History == nil || err != nil && !missing ||
		!missing && (t.Total > 0 || t.State == jobs.TaskSubmitting) {
		return t, false, err
	}
	was, failed := f.History.Task(ctx, id)
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

// PastJobs returns the jobs of a task from history, by host.
func (f Finder) PastJobs(ctx context.Context, id jobs.TaskID) ([]jobs.JobInfo, error) {
	r, err := f.History.Report(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]jobs.JobInfo, len(r.Jobs))
	for i, j := range r.Jobs {
		out[i] = marked(j.JobInfo, j.Proof)
	}
	return out, nil
}

// OrPast returns a job from history if err says that Redis has forgotten it.
func (f Finder) OrPast(ctx context.Context, id jobs.ID, err error) (jobs.JobInfo, error) {
	if f.History == nil || !errors.Is(err, queue.ErrNotFound) {
		return jobs.JobInfo{}, err
	}
	j, failed := f.History.Job(ctx, id)
	if errors.Is(failed, history.ErrNotFound) {
		return jobs.JobInfo{}, err
	}
	return marked(j.JobInfo, j.Proof), failed
}

// Gone returns the answer for err, an error about a task or a job of it. If Redis has forgotten the
// task, the answer has the end that history knows.
func (f Finder) Gone(ctx context.Context, id jobs.TaskID, err error) error {
	if !errors.Is(err, queue.ErrNotFound) {
		return web.Problem(err)
	}
	t, past, failed := f.Task(ctx, id)
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

// EachJob calls each with the jobs of a task, from Redis or, if Redis has forgotten them, from
// history.
func (f Finder) EachJob(ctx context.Context, id jobs.TaskID, from, most int,
	each func([]jobs.JobInfo) error) error {
	_, past, err := f.Task(ctx, id)
	if err != nil {
		return err
	}
	if !past {
		return f.Jobs.EachJob(ctx, id, from, most, each)
	}
	list, err := f.PastJobs(ctx, id)
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
