package server

import (
	"muster/history"
	"muster/jobs"
)

// The bodies of the API. Times are RFC 3339 in UTC with milliseconds; outcomes
// lists every outcome, zeros too. Errors are RFC 9457 problems, in which errors[]
// names every mistake at once.

// Submit is the body of POST /v1/tasks. With an id that an earlier submit had,
// the same body completes that submit and answers like it.
type Submit struct {
	ID      string            `json:"id,omitempty"`      // task id; made by the server if empty
	Runbook string            `json:"runbook"`           // name of a runbook
	On      string            `json:"on"`                // selector; an empty selection is an error
	Args    map[string]string `json:"args,omitempty"`    // arguments of the runbook
	Files   map[string][]byte `json:"files,omitempty"`   // contents of the arguments of type file
	Secrets map[string]string `json:"secrets,omitempty"` // texts of those of type secret, and become.password: sealed, then kept
	At      jobs.Time         `json:"at,omitzero"`       // not before; at once if not set
	Expire  string            `json:"expire,omitempty"`  // not started so long after its time: expired (8h)
	As      string            `json:"as,omitempty"`      // another operator; in muster demo only
	DryRun  bool              `json:"dry_run,omitempty"` // answer what would be done, do nothing
	// Priority is high, normal or low: the task's share of an overloaded queue.
	Priority string `json:"priority,omitempty"`
	Manner
	// Supersedes is a key: what older tasks with it have queued on the same hosts
	// ends, superseded by this task.
	Supersedes string `json:"supersedes,omitempty"`
	// Rollout is how it goes out; not set: all at once, whatever fails.
	Rollout *jobs.RolloutAsk `json:"rollout,omitempty"`
	Timed
}

// Manner is how a runbook is run.
type Manner struct {
	// Only makes a dry run of it on the hosts: what is checked before the first change, or
	// also what would change.
	Only string `json:"only,omitempty" enum:"check,diff"`
	// Disruptive makes the task so whatever its runbook says; nothing makes it less.
	Disruptive bool `json:"disruptive,omitempty"`
}

// Timed is what a submit says about windows and freezes.
type Timed struct {
	// Window lets jobs begin only in approved windows of their hosts, whatever the runbook
	// says; nothing makes it less.
	Window bool `json:"window,omitempty"`
	// Expect is how long it takes on a host, such as 20m, where no earlier success of the same
	// runbook with the same arguments tells it, whatever the runbook says. Work that needs a window
	// is refused where nothing tells how long it takes.
	Expect string `json:"expect,omitempty"`
	// SkipClosed leaves out hosts for which no opening is known. Else they are a mistake.
	SkipClosed bool `json:"skip_closed,omitempty"`
	// OverrideFreeze is why freezes do not hold for this task. It is kept as an event.
	OverrideFreeze string `json:"override_freeze,omitempty" maxLength:"500"`
}

// Submitted is the answer of POST /v1/tasks: 201 for a new task, 200 for one
// that was there already and for a dry run. Of a dry run task and state are
// empty, and Hosts says which hosts it would be.
type Submitted struct {
	jobs.TaskInfo
	Hosts   string `json:"hosts,omitempty"`   // folded: fw[001-300],vpn1
	Durable string `json:"durable,omitempty"` // how far Redis can be trusted to remember it
	Fences
	Windows *WindowPlan `json:"windows,omitempty"` // of a task that needs windows
	// Frozen are hosts, folded, on which it does not begin at its time, and why. Where it needs
	// windows, freezes are cut out of those.
	Frozen []string `json:"frozen,omitempty"`
	// Follows is the chain that the task begins, if it was asked for.
	Follows *jobs.ChainInfo `json:"follows,omitempty"`
	LeftOut
}

// Fences are what the hosts of a task do not keep, as far as is known.
type Fences struct {
	// Unfenced are those hosts, folded, that keep no record of attempts: a step whose worker is
	// lost there ends unknown.
	Unfenced string `json:"unfenced,omitempty"`

	// Unmarked are the redundancy groups of which the task disturbs a host, and no member can
	// carry a marker: that only one is disturbed holds there while Redis keeps its data.
	Unmarked []string `json:"unmarked,omitempty"`
}

// WindowPlan is when it is whose turn, if nothing else runs: an estimate.
type WindowPlan struct {
	Seconds  float64          `json:"seconds"`         // that a job takes, the longest
	Reserve  float64          `json:"reserve_seconds"` // for going back
	Slots    int              `json:"slots"`           // jobs at a time, of all nodes; 0: no node is up
	Openings []PlannedOpening `json:"openings"`
	Later    string           `json:"later,omitempty"` // hosts whose turn is behind the last one; folded
}

// PlannedOpening is an opening, and who has a turn in it.
type PlannedOpening struct {
	Windows []string  `json:"windows"`
	Start   jobs.Time `json:"start"`
	End     jobs.Time `json:"end"`
	Count   int       `json:"count"`
	Hosts   string    `json:"hosts"` // folded
}

// TaskList is the answer of GET /v1/tasks.
type TaskList struct {
	Tasks []jobs.TaskInfo `json:"tasks"`
}

// NextRequest is the body of POST /v1/tasks/{task}/rollout/next.
type NextRequest struct {
	OrderRequest
	// MaxFailed is how many may fail in all from now on, N or P%; as before if empty.
	MaxFailed string `json:"max_failed,omitempty"`
	// Wave is the wave to open, which must be the next one; of one that is open nothing is
	// done. 0: whatever is next.
	Wave int `json:"wave,omitempty" minimum:"0"`
}

// ChainList is the answer of GET /v1/chains.
type ChainList struct {
	Chains []jobs.ChainInfo `json:"chains"`
}

// JobList is the answer of GET /v1/tasks/{task}/jobs, a page of it.
type JobList struct {
	Jobs []jobs.JobInfo `json:"jobs"`
	Next string         `json:"next,omitempty"` // cursor of the next page; empty: this was the last
}

// JobDetail is the answer of GET /v1/jobs/{job}.
type JobDetail struct {
	jobs.JobInfo
	Of     *OfTask           `json:"of,omitempty"`     // nil: nobody knows its task any more
	Awaits *jobs.Appointment `json:"awaits,omitempty"` // the window or freeze for which it waits; nil: none
}

// OfTask is what the task of a job was asked for.
type OfTask struct {
	Task     jobs.TaskID `json:"task"`
	Runbook  string      `json:"runbook"`
	Operator string      `json:"operator"`
	history.Asked
}

// Alike is the part of a task's jobs that ended alike: same outcome, same exit
// code and the same output, byte for byte, or, where there is no output, the
// same error.
type Alike struct {
	Outcome  jobs.Outcome `json:"outcome"`
	ExitCode *int         `json:"exit_code"`
	Count    int          `json:"count"`
	Hosts    string       `json:"hosts"` // folded: fw[001-300],vpn1
	Error    string       `json:"error,omitempty"`
	Output   []byte       `json:"output,omitempty"`  // its beginning, as the hosts sent it
	LeftOut  int          `json:"left_out"`          // bytes of output that are not shown
	Example  jobs.ID      `json:"example,omitempty"` // a job of the group, for `muster logs`
}

// Summary is the answer of GET /v1/tasks/{task}/summary: biggest group first.
type Summary struct {
	Task    jobs.TaskInfo `json:"task"`
	Groups  []Alike       `json:"groups"`
	AtGates int           `json:"at_gates,omitempty"` // jobs that stand at a gate which nobody has answered
	Waits   []jobs.Lack   `json:"waits,omitempty"`    // why its jobs do not run, but for windows
	// Awaits is for which windows and freezes its jobs wait, the first opening first.
	Awaits []jobs.Appointment `json:"awaits,omitempty"`
}

// LackList is the answer of GET /v1/tasks/{task}/waits.
type LackList struct {
	Waits []jobs.Lack `json:"waits"`
	// Awaits is for which windows and freezes jobs wait.
	Awaits []jobs.Appointment `json:"awaits,omitempty"`
}

// Said is what a host said, an event of GET /v1/tasks/{task}/output.
type Said struct {
	Job  jobs.ID `json:"job"`
	Host string  `json:"host"`
	At   int64   `json:"at"` // place of the data; more than is known: something is left out
	Data []byte  `json:"data"`
}

// JobEnd is how a job ended, an event of GET /v1/tasks/{task}/output.
type JobEnd struct {
	Job      jobs.ID      `json:"job"`
	Host     string       `json:"host"`
	Outcome  jobs.Outcome `json:"outcome"`
	ExitCode *int         `json:"exit_code"`
	Error    string       `json:"error"`
}

// The events of GET /v1/tasks/{task}/output and /v1/tasks/{task}/summaries.
const (
	EventSaid    = "said"    // Said
	EventEnded   = "ended"   // JobEnd
	EventSummary = "summary" // Summary
	EventOver    = "over"    // jobs.TaskInfo: nothing more will come
)

// BlobList is the answer of GET /v1/blobs.
type BlobList struct {
	Blobs []jobs.Blob `json:"blobs"` // the one used last first
	Size  int64       `json:"size"`  // bytes of all
	Max   int64       `json:"max"`   // bytes that all may have
}

// HostFacts are what a host said of itself.
type HostFacts struct {
	jobs.HostFacts
	Age   float64 `json:"age"`   // seconds since then
	Stale bool    `json:"stale"` // it is so long ago that they may be wrong
}

// FactList is the answer of GET /v1/facts?on=SELECTOR.
type FactList struct {
	Hosts []HostFacts `json:"hosts"`
	None  string      `json:"none"` // hosts that never said anything; folded
}

// Gathered is the answer of POST /v1/tasks/{task}/facts.
type Gathered struct {
	Task jobs.TaskID `json:"task"`
	Kept int         `json:"kept"` // hosts whose facts are kept now
	Bad  []BadFacts  `json:"bad"`  // hosts that said something else
}

// BadFacts is why the facts of a host are not kept.
type BadFacts struct {
	Host  string `json:"host"`
	Error string `json:"error"`
}

// NodeList is the answer of GET /v1/nodes.
type NodeList struct {
	Nodes  []jobs.Node `json:"nodes"`
	Duties []jobs.Duty `json:"duties"` // which server has which
}

// Zone is what waits in a zone.
type Zone struct {
	Zone    string    `json:"zone"`
	Queued  int64     `json:"queued"`
	Again   int64     `json:"again"`
	Due     int64     `json:"due"`
	Oldest  jobs.Time `json:"oldest"`
	Overdue float64   `json:"overdue"` // seconds
	Frozen  jobs.Time `json:"frozen"`
	Why     string    `json:"why,omitempty"`
	Owes    bool      `json:"asks_history,omitempty" doc:"frozen until history was asked what has ended"`
	Halted  string    `json:"halted,omitempty"`
	Paused  string    `json:"paused,omitempty"`
	NoNode  string    `json:"no_node,omitempty" doc:"that no node works there, and since when"`
	Trouble string    `json:"trouble,omitempty" doc:"why the zone cannot be read; then its numbers are not known"`
	jobs.Sharing
	Deferred jobs.Deferrals `json:"deferred" doc:"jobs that wait for a time of their own"`
}

// QueueInfo is the answer of GET /v1/queue.
type QueueInfo struct {
	Zones []Zone `json:"zones"`
}

// RunbookArg describes an argument of a runbook.
type RunbookArg struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Default     string `json:"default,omitempty"`
	ArgRules
}

// Runbook describes a runbook.
type Runbook struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Disruptive  bool         `json:"disruptive"`
	Repeatable  bool         `json:"repeatable"`
	Needs       []string     `json:"needs"` // names of limits; facts, as fact.os=debian
	Arguments   []RunbookArg `json:"arguments"`
}

// RunbookList is the answer of GET /v1/runbooks.
type RunbookList struct {
	Runbooks []Runbook `json:"runbooks"`
}

// TokenRequest is the body of POST /v1/tokens.
type TokenRequest struct {
	Name string `json:"name"`
}

// TokenAnswer holds a new token, which is shown once and stored hashed.
type TokenAnswer struct {
	Name  string `json:"name"`
	Token string `json:"token"`
}

// TokenInfo is what is known of a token later.
type TokenInfo struct {
	Name    string    `json:"name"`
	Created jobs.Time `json:"created"` // null if it is not known

	// Wrong says why the token proves nobody; empty: it does.
	Wrong string `json:"wrong,omitempty"`
}

// TokenList is the answer of GET /v1/tokens.
type TokenList struct {
	Tokens []TokenInfo `json:"tokens"`
}

// Health is the answer of GET /v1/health: 200 if the server can work, else 503. One whose
// Redis is full says 200 and how it is: a load balancer shall not take that from people,
// who can look and cancel, as all servers have the same Redis.
type Health struct {
	Status    string `json:"status"` // ok, or what is wrong
	Version   string `json:"version"`
	Redis     string `json:"redis"`             // ok, or the error
	Full      bool   `json:"full,omitempty"`    // Redis takes nothing new, but results and cancels
	Doubt     bool   `json:"doubt,omitempty"`   // what is agreed about times is not known somewhere
	Stopped   bool   `json:"stopped,omitempty"` // nothing starts: see Status
	Inventory string `json:"inventory"`         // version in force
	Hosts     int    `json:"hosts"`
}
