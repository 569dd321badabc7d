package state

import (
	"context"

	"muster/jobs"
	"muster/jobs/queue/care"
	"muster/jobs/queue/read"
	"muster/jobs/staff"
	"muster/server/nodes"
)

// Queue is the part of the queue by which a server says how the house is.
type Queue struct {
	Conn     Conn
	Nodes    Nodes
	Duties   Duties
	Zones    Zones
	Tasks    Tasks
	Jobs     Jobs
	Halts    Halts
	Zoning   Zoning
	Debts    Debts
	Outages  Outages
	Backlogs Backlogs
}

// Conn is the connection itself. Writes wraps queue.ErrFull if Redis has no room.
type Conn interface {
	Writes(ctx context.Context) error
	Zones(ctx context.Context) ([]string, error)
}

// Nodes lists the nodes, and the zones with the nodes that work there.
type Nodes interface {
	nodes.Queue
	Staff(ctx context.Context) (map[string]*staff.Zone, error)
}

// Duties lists the servers that have a duty.
type Duties interface {
	Leaders(ctx context.Context) ([]jobs.Duty, error)
}

// Zones reads the length of the queue of a zone, its freeze, and the counters of ends.
type Zones interface {
	Depth(ctx context.Context, zone string) (read.Depth, error)
	Freezes(ctx context.Context, zones []string) []read.Freeze
	Ends(ctx context.Context, zone string) (read.Ends, error)
}

// Tasks reads tasks.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error)
}

// Jobs gives the jobs of a task in the order of its frozen host list, from a place on, so many at
// a time.
type Jobs interface {
	EachJob(ctx context.Context, id jobs.TaskID, from, most int,
		f func([]jobs.JobInfo) error) error
}

// Halts reads the pauses and the halt.
type Halts interface {
	Pauses(ctx context.Context) (jobs.Pauses, error)
}

// Zoning tells other servers of this one's time zone data, and returns theirs.
type Zoning interface {
	SayZones(ctx context.Context, server, data string) (map[string]string, error)
}

// Debts reads which zones wait for history.
type Debts interface {
	Debts(ctx context.Context, zones []string) ([]care.Debt, error)
}

// Outages reads since when history is not written.
type Outages interface {
	HistoryAway(ctx context.Context) (jobs.HistoryAway, error)
}

// Streams counts the streams that are open.
type Streams interface {
	Open() int64
}
