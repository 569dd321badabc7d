package server

import (
	"context"
	"time"

	"muster/jobs"
	"muster/jobs/queue/hooks"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/read"
	"muster/jobs/staff"
	"muster/server/apply"
	"muster/server/approvals"
	"muster/server/books"
	"muster/server/calendar"
	"muster/server/duties"
	"muster/server/entries"
	"muster/server/firing"
	"muster/server/gitops"
	"muster/server/historian"
	"muster/server/intake"
	"muster/server/lanes"
	"muster/server/nodes"
	"muster/server/orders"
	"muster/server/schedules"
	"muster/server/sessions"
	"muster/server/state"
	"muster/server/stock"
	"muster/server/tasks"
	"muster/server/tokens"
)

// Stores has the handles of the queue that a server needs, each with some of its methods.
// queue.ErrNotFound and the other errors of that package keep their meaning; any other error
// means that Redis cannot be used at the moment.
type Stores struct {
	Conn   Conn
	Read   Reads
	Orders Orders
	Submit Entries
	Hub    Hub
	Care   Care
	Blobs  Contents
	Form   state.Forms

	// Durable says how far Redis can be trusted to remember what was accepted,
	// such as "appendfsync everysec"; each submit repeats it.
	Durable string

	Firings firing.Book   // what triggers did
	Kept    apply.Store   // of applies
	Places  gitops.Places // the branches from which entries come
	Texts   entries.Store
}

// Conn is the connection itself.
type Conn interface {
	Writes(ctx context.Context) error // wraps queue.ErrFull
	Zones(ctx context.Context) ([]string, error)
	Alert(ctx context.Context, zone string, a jobs.Alert) error
	Calls() []hooks.Call
}

// Reads are the handles that show what is there.
type Reads struct {
	Tasks   Tasks
	Endings historian.Endings
	Jobs    Jobs
	Waits   Waits
	Outputs Outputs
	Zones   Zones
	Groups  orders.Groups
	Moves   stock.Moving
}

// Orders are the handles for what operators order about work that is in the queue.
type Orders struct {
	Switches  orders.Switches
	Halts     orders.Halts
	Gates     orders.TaskGates
	Exclusion orders.Exclusion
	Rollouts  orders.Rollouts
	Waves     duties.Openings
	Asks      tasks.Asking
}

// Entries are the handles that put tasks into the queue, and end what of them has not begun.
type Entries struct {
	Submits Submits
	Cancels Cancels
	Lanes   intake.Lanes
	Lined   lanes.Kept // the same, for those who let tasks begin
	Puts    Puts
	Retries Retrying
	Signed  SignedOrders
}

// Hub are the handles for what belongs to no zone.
type Hub struct {
	Nodes     Staffing
	Duties    Elections
	Facts     books.Facts
	Drains    orders.Drains
	Inventory stock.Publishing
	Members   Membership
	Times     Timetables
	Moves     duties.Moves
	Estimates Estimates
	Agreed    state.AgreedKept
	Chains    Chains
	ChainDuty duties.ChainCare
	Schedules schedules.Book
	Ticks     duties.Ticks
	Proofs    Proofs
}

// Proofs are the handles for what proves who calls.
type Proofs struct {
	Tokens   tokens.Store
	Sessions sessions.Store
}

// Timetables are the handles for the timetable: its texts, what workers read of it, and the time
// zone data by which each server reads it.
type Timetables struct {
	Texts    calendar.Times
	Excerpts duties.Excerpts
	Zones    state.Zoning
	Signing  Signing // nil: the timetable is not signed
}

// Signing says for nodes which timetable is in force.
type Signing interface {
	Restate(ctx context.Context, may func(version int64) error) error
	Since() time.Time
}

// Care are the handles that keep the queue in order.
type Care struct {
	Zones    duties.ZoneCare
	Fsck     orders.Fsck
	History  historian.Trimming
	Outages  historian.Outages
	Backlogs state.Backlogs
	Debts    historian.Debts
	Recall   historian.Recalling
}

// Contents are the handles for contents that are too large for a task.
type Contents struct {
	Store books.BlobStore
	Care  books.BlobCare
}

// Outputs reads what hosts said, for people and for history.
type Outputs interface {
	tasks.Outputs
	historian.Outputs
}

// Submits puts tasks into the queue.
type Submits interface {
	Submit(ctx context.Context, t jobs.Task, hosts map[string][]string, progress func(int)) error
	PutHeld(ctx context.Context, t jobs.Task, hosts map[string][]string) error
	approvals.Holds
}

// SignedOrders keeps the signed orders of tasks.
type SignedOrders interface {
	duties.SignedOrders
	approvals.Orders
	intake.OrderReader
}

// Elections gives each duty to one server, and lists who has which.
type Elections interface {
	Lead(ctx context.Context, duty, who string, held int64) (hub.Term, error)
	Leave(ctx context.Context, duty string, held int64) error
	Leaders(ctx context.Context) ([]jobs.Duty, error)
}

// Membership says which hosts a zone has in an inventory.
type Membership interface {
	HostsIn(ctx context.Context, zone, version string, names []string) (map[string]bool, error)
	HostsOf(ctx context.Context, version string, zones []string) (map[string]int, error)
}

// Retrying tells by which tasks jobs of a task are done again already.
type Retrying interface {
	Retries(ctx context.Context, of, by jobs.TaskID, hosts []string) ([]jobs.Again, error)
}

// Tasks reads requests as a whole.
type Tasks interface {
	Spec(ctx context.Context, id jobs.TaskID) (jobs.Spec, error)
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error)
	OpenOf(ctx context.Context, zone string, runbooks ...string) ([]jobs.TaskID, error)
}

// Jobs reads the parts of tasks. EachJob gives those of one task in the order of its frozen
// host list, from a place on, so many at a time; those before it cost nothing.
type Jobs interface {
	EachJob(ctx context.Context, id jobs.TaskID, from, most int,
		f func([]jobs.JobInfo) error) error
	Job(ctx context.Context, id jobs.ID) (jobs.JobInfo, error)
	Explain(ctx context.Context, list []jobs.JobInfo, most int) ([]read.Reasons, error)
	JobZone(ctx context.Context, id jobs.ID) (string, error)
	JobsIn(ctx context.Context, zone string, ids []jobs.ID) ([]jobs.JobInfo, error)
}

// Waits reads what waits for a time of its own, and what a host has to do.
type Waits interface {
	Deferred(ctx context.Context, zone string) ([]jobs.JobInfo, bool, error)
	HostWork(ctx context.Context, zone, host string, tasks int) (jobs.HostWork, error)
}

// Zones reads what waits in a zone, and what happened there.
type Zones interface {
	Depth(ctx context.Context, zone string) (read.Depth, error)
	Freezes(ctx context.Context, zones []string) []read.Freeze
	Ends(ctx context.Context, zone string) (read.Ends, error)
	Events(ctx context.Context, zone, after string, limit int, wait time.Duration) (
		[]jobs.Happening, string, error)
	EventPage(ctx context.Context, zone, after string, most int) (read.EventPage, error)
}

// Staffing says who works.
type Staffing interface {
	nodes.Queue
	Staff(ctx context.Context) (map[string]*staff.Zone, error)
	NoteStaff(ctx context.Context) error
}

// Chains are tasks that follow each other.
type Chains interface {
	SaveChain(ctx context.Context, c jobs.Chain) (jobs.Chain, error)
	Chain(ctx context.Context, id jobs.TaskID) (jobs.Chain, error)
	ChainOrders(ctx context.Context, id jobs.TaskID) (jobs.ChainOrders, *jobs.ChainInfo, error)
	AskChain(ctx context.Context, id jobs.TaskID, ask jobs.ChainOrders) (fresh bool, err error)
}

// Cancels ends tasks, by order or because another takes their place.
type Cancels interface {
	orders.Cancels
	lanes.Cancels
}

// Puts puts tasks that wait for their turn, and lets them begin.
type Puts interface {
	intake.Puts
	lanes.Commits
}

// Estimates keeps how long runbooks take.
type Estimates interface {
	Estimates(ctx context.Context, fields []string) (map[string]jobs.Estimate, error)
	SaveEstimates(ctx context.Context, list map[string]string) error
	ReplaceEstimates(ctx context.Context, list map[string]string) error
}
