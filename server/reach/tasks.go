package reach

import (
	"context"
	"slices"

	"muster/history"
	"muster/jobs"
	"muster/server/stock"
)

// Tasks reads the facts of a task on which rights depend: from Redis or, if Redis has forgotten
// its jobs, from history.
type Tasks struct {
	Find Finder
	Jobs stock.Jobs
	Held
	History *history.Store // nil: none
	Stock   *stock.Store
}

// Finder returns a task from Redis or, if Redis has forgotten its jobs, from history.
type Finder interface {
	Task(ctx context.Context, id jobs.TaskID) (t jobs.TaskInfo, past bool, err error)
}

// Held reports whether a task waits for signatures.
type Held interface {
	IsHeld(ctx context.Context, id jobs.TaskID) (bool, error)
}

// Task returns a task. One from history counts as forgotten, whether or not it has ended.
func (r Tasks) Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	t, past, err := r.Find.Task(ctx, id)
	t.Forgotten = past
	return t, err
}

// EachJob calls each with the jobs of a task. A host counts for a task of history only if it had
// the customer of today when its job ended: a host that changes hands takes no history along.
func (r Tasks) EachJob(ctx context.Context, id jobs.TaskID, from, most int,
	each func([]jobs.JobInfo) error) error {
	_, forgotten, err := r.Find.Task(ctx, id)
	if err != nil {
		return err
	}
	if !forgotten {
		return r.Jobs.EachJob(ctx, id, from, most, each)
	}
	past, err := r.History.Report(ctx, id)
	if err != nil {
		return err
	}
	list := []jobs.JobInfo{}
	if now := r.Stock.Now(); now != nil {
		for _, j := range past.Jobs {
			if h, known := now.Host(j.Host); known && h.Customer == j.Customer {
				list = append(list, j.JobInfo)
			}
		}
	}
	for part := range slices.Chunk(list[min(from, len(list)):], max(most, 1)) {
		if err := each(part); err != nil {
			return err
		}
	}
	return nil
}
