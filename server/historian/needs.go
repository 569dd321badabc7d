package historian

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/read"
	"muster/trust"
)

// Needs has all that a historian works with.
type Needs struct {
	Queue Queue
	// Writer and Past are history. history.ErrNotFound keeps its meaning; any other error means
	// that history cannot be used at the moment.
	Writer    Writer
	Past      PastTasks
	Estimates Estimates
	Guard     *Guard

	Proofs   Proofs
	Counting Counting

	// Stock returns the inventory in force with its version; nil: this server has none.
	Stock func() (inv *fleet.Inventory, version string)

	Keep    time.Duration // how long the store keeps what has ended; 0: for ever
	Trouble *Trouble      // takes what keeps the historian from writing
	Log     hclog.Logger
	Now     func() time.Time
}

// Proofs serve to hold ends and events against the proofs of nodes.
type Proofs struct {
	Trust  func() (*trust.Rules, error) // nil: nobody is asked for proofs
	Alerts Alerts
	Doubts func() // counts an end or an event that is not proven
}

// Queue are the handles of the queue that a historian needs.
type Queue struct {
	Zones    Zones
	Tasks    Tasks
	Jobs     Jobs
	Endings  Endings
	Outputs  Outputs
	Events   Events
	Trimming Trimming
	Members  Members
	Outages  Outages
}

// Zones lists the zones that Redis knows.
type Zones interface {
	Zones(ctx context.Context) ([]string, error)
}

// Tasks reads requests as a whole.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error)
}

// Jobs reads the parts of tasks.
type Jobs interface {
	EachJob(ctx context.Context, id jobs.TaskID, from, most int,
		f func([]jobs.JobInfo) error) error
}

// Endings reads how jobs of one task ended in a zone.
type Endings interface {
	Endings(ctx context.Context, zone string, ids []jobs.ID) ([]read.Ending, error)
}

// Outputs reads the output of jobs.
type Outputs interface {
	Entries(ctx context.Context, zone string, ids []jobs.ID) (map[jobs.ID]read.Entries, error)
}

// Events reads the events of zones.
type Events interface {
	EventPage(ctx context.Context, zone, after string, most int) (read.EventPage, error)
}

// Trimming forgets events that history has.
type Trimming interface {
	TrimEvents(ctx context.Context, zone, before string) error
}

// Members says which hosts a zone has in an inventory.
type Members interface {
	HostsIn(ctx context.Context, zone, version string, names []string) (map[string]bool, error)
}

// Writer stores events, and deletes old ones.
type Writer interface {
	Position(ctx context.Context, zone string) (api.Position, error)
	Put(ctx context.Context, b history.Batch, now time.Time) ([]history.Estimate, error)
	Forget(ctx context.Context, before time.Time) (int64, error)
}

// PastTasks are the tasks of the store, and what Redis has to add to them.
type PastTasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	Open(ctx context.Context, most int) ([]jobs.TaskID, error)
	Reconcile(ctx context.Context, t jobs.TaskInfo, ended []api.PastJob,
		said map[jobs.ID]jobs.Output) error
}
