package orders

import (
	"context"

	"muster/jobs"
)

// Tasks reads one task.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// Jobs gives the jobs of a task in the order of its frozen host list, from a place on, so many at
// a time.
type Jobs interface {
	EachJob(ctx context.Context, id jobs.TaskID, from, most int,
		f func([]jobs.JobInfo) error) error
}

// Work reads the jobs that a host has, among those of the newest tasks.
type Work interface {
	HostWork(ctx context.Context, zone, host string, tasks int) (jobs.HostWork, error)
}

// A Listing names the zones.
type Listing interface {
	Zones(ctx context.Context) ([]string, error)
}

// Rollouts lists and stops tasks with a rule, and lets them continue.
type Rollouts interface {
	Rollouts(ctx context.Context) ([]jobs.TaskID, error)
	StopTask(ctx context.Context, id jobs.TaskID, note string) (jobs.Rolled, error)
	GoOn(ctx context.Context, id jobs.TaskID, allowed *int, note string) (jobs.Rolled, error)
}
