package duties

import (
	"context"

	"muster/jobs"
)

// Tasks reads requests as a whole.
type Tasks interface {
	Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error)
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	Spec(ctx context.Context, id jobs.TaskID) (jobs.Spec, error)
}

// Jobs reads the jobs of a task in the order of its frozen host list, from a place on, so many
// at a time.
type Jobs interface {
	EachJob(ctx context.Context, id jobs.TaskID, from, most int,
		f func([]jobs.JobInfo) error) error
}

// jobsMax bounds the jobs that are read at once.
const jobsMax = 500

// Cancels ends jobs that have not begun.
type Cancels interface {
	Cancel(ctx context.Context, id jobs.TaskID, note string) (jobs.Cancel, error)
	CancelJobs(ctx context.Context, ids []jobs.ID, note string) (jobs.Cancel, error)
}
