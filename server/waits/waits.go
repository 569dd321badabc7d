package waits

import (
	"context"
	"errors"
	"time"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/read"
	"muster/server/stock"
	"muster/windows"
)

// chunk is the number of jobs that are read at once.
const chunk = 500

// Explaining finds out why jobs do not run, and puts it into them. It asks about so many of those
// that wait for a thing that another job has.
type Explaining interface {
	Explain(ctx context.Context, list []jobs.JobInfo, most int) ([]read.Reasons, error)
}

// Deferring lists the jobs of a zone that have a time of their own.
type Deferring interface {
	Deferred(ctx context.Context, zone string) ([]jobs.JobInfo, bool, error)
}

// Tasks reads what tasks were submitted with.
type Tasks interface {
	Spec(ctx context.Context, id jobs.TaskID) (jobs.Spec, error)
}

// Estimates reads how long runbooks take.
type Estimates interface {
	Estimates(ctx context.Context, fields []string) (map[string]jobs.Estimate, error)
}

// A Reader finds out why jobs wait.
type Reader struct {
	Explaining Explaining
	Deferring  Deferring
	Tasks      Tasks
	Jobs       stock.Jobs
	Estimates  Estimates
	Stock      *stock.Store
	Book       func(context.Context) (*windows.Book, error)
	Now        func() time.Time
}

// Explained returns a job with the reason why it does not run.
func (r *Reader) Explained(ctx context.Context, j jobs.JobInfo) (jobs.JobInfo, error) {
	list := []jobs.JobInfo{j}
	err := r.explain(ctx, list, 1, nil)
	return list[0], err
}

// ExplainAll puts into jobs of one task why they do not run. It asks about the first ones of those
// that wait for a thing that another job has.
func (r *Reader) ExplainAll(ctx context.Context, list []jobs.JobInfo) error {
	return r.explain(ctx, list, lacksMax, nil)
}

// explain gives the reasons to f, one by one. Jobs that Redis has forgotten have none.
func (r *Reader) explain(ctx context.Context, list []jobs.JobInfo, most int,
	f func(jobs.JobInfo, read.Reasons)) error {
	if len(list) == 0 {
		return nil
	}
	reasons, err := r.Explaining.Explain(ctx, list, most)
	if errors.Is(err, queue.ErrNotFound) {
		return nil // it is gone, or history told of it
	}
	if err != nil {
		return err
	}
	for i, reason := range reasons {
		if f != nil {
			f(list[i], reason)
		}
	}
	return nil
}
