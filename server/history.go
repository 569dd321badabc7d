package server

import (
	"context"
	"errors"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
)

// History is what a server needs of the history. history.ErrNotFound keeps its
// meaning; any other error means that it cannot be used at the moment.
type History interface {
	HistoryWriter
	HistoryCare
	HistoryEstimates
	HistoryReader
	HistoryTasks
	HistoryCourse
	HistoryPlans
	PastEnds
	AgreedHistory
}

// HistoryCourse tells how jobs went.
type HistoryCourse interface {
	Course(ctx context.Context, id jobs.ID) (api.Course, error)
	Events(ctx context.Context, of history.About, skip, most int) ([]jobs.Happening, bool, error)
}

// HistoryPlans keeps plans, and compares them with what happened.
type HistoryPlans interface {
	SavePlan(ctx context.Context, p api.Plan) error
	Calibrate(ctx context.Context, since time.Time) (api.Calibration, error)
}

// HistoryWriter stores what happens.
type HistoryWriter interface {
	Position(ctx context.Context, zone string) (api.Position, error)
	Put(ctx context.Context, b history.Batch, now time.Time) ([]history.Estimate, error)
	Reconcile(ctx context.Context, t jobs.TaskInfo, ended []api.PastJob) error
}

// HistoryCare looks after what is stored.
type HistoryCare interface {
	Forget(ctx context.Context, before time.Time) (int64, error)
	Open(ctx context.Context, most int) ([]jobs.TaskID, error)
	Where() string
}

// HistoryEstimates keeps how long work takes.
type HistoryEstimates interface {
	Estimates(ctx context.Context) ([]history.Estimate, error)
	ForgetEstimates(ctx context.Context) (bool, error)
}

// HistoryReader finds what is stored.
type HistoryReader interface {
	Jobs(ctx context.Context, f history.Filter, cursor string, most int) (
		[]api.PastJob, string, error)
	Gaps(ctx context.Context) ([]api.Gap, error)
	Positions(ctx context.Context) ([]api.Position, error)
}

// HistoryTasks shows single tasks and jobs.
type HistoryTasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	Report(ctx context.Context, id jobs.TaskID) (api.Report, error)
	Job(ctx context.Context, id jobs.ID) (api.PastJob, error)
	Output(ctx context.Context, id jobs.ID) ([]byte, error)
}

// errNoHistory is the answer of a server without one.
var errNoHistory = errors.New("this server keeps no history: history.url is none")
