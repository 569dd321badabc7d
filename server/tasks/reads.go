package tasks

import (
	"context"
	"time"

	"muster/jobs"
	"muster/jobs/queue/read"
)

// Reads are the handles that show tasks, jobs and what hosts said.
type Reads struct {
	Tasks   Tasks
	Jobs    Jobs
	Outputs Outputs
	Events  Events
}

// Tasks reads tasks.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error)
}

// Jobs reads the parts of tasks. EachJob gives those of one task in the order of its frozen
// host list, from a place on, so many at a time; those before it cost nothing.
type Jobs interface {
	EachJob(ctx context.Context, id jobs.TaskID, from, most int,
		f func([]jobs.JobInfo) error) error
	Job(ctx context.Context, id jobs.ID) (jobs.JobInfo, error)
	JobZone(ctx context.Context, id jobs.ID) (string, error)
	JobsIn(ctx context.Context, zone string, ids []jobs.ID) ([]jobs.JobInfo, error)
}

// Outputs reads the outputs of hosts: what is kept, or what is new since the last look.
type Outputs interface {
	Outputs(ctx context.Context, zone string, ids []jobs.ID) (map[jobs.ID]jobs.Output, error)
	Listen(ctx context.Context, zone string, list map[jobs.ID]*read.Heard) (
		map[jobs.ID]jobs.Output, error)
}

// Events reads the events of a zone behind a place, and returns the place of the last one.
type Events interface {
	Events(ctx context.Context, zone, after string, limit int, wait time.Duration) (
		[]jobs.Happening, string, error)
}
