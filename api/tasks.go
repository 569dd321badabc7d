package api

import "muster/jobs"

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

// CancelRequest is the body of POST /v1/tasks/{task}/cancel. Without jobs and
// hosts it is about the whole task.
type CancelRequest struct {
	OrderRequest
	Jobs  []jobs.ID `json:"jobs,omitempty" maxItems:"10000" nullable:"false"`  // of this task
	Hosts []string  `json:"hosts,omitempty" maxItems:"10000" nullable:"false"` // whose jobs of this task
}

// RetryRequest is the body of POST /v1/tasks/{task}/retry.
type RetryRequest struct {
	OrderRequest
	ID          string         `json:"id,omitempty"`           // of the new task; made by the server if empty
	Outcomes    []jobs.Outcome `json:"outcomes,omitempty"`     // of the jobs to do again; failed if empty
	SkipMissing bool           `json:"skip_missing,omitempty"` // leave out hosts that are gone
	DryRun      bool           `json:"dry_run,omitempty"`      // answer what would be done, do nothing
	Again       bool           `json:"again,omitempty"`        // also what was retried from this task before
	// Expect is as that of Timed; if empty, what the old task was given holds.
	Expect string `json:"expect,omitempty"`
}

// Retried is the answer of POST /v1/tasks/{task}/retry: the new task. What another task
// does again already is not done once more, unless that is asked for. If nothing is left
// no task is made, Already is set, and the task is the earlier one, if it is one.
type Retried struct {
	Submitted
	Open    int    `json:"open"`              // jobs of the old task that have not ended, and are left out
	Skipped string `json:"skipped,omitempty"` // hosts that are gone from the inventory, folded

	Already bool      `json:"already,omitempty"` // no task was made: all of it is, or was, done again
	Earlier []Earlier `json:"earlier,omitempty"` // what is left out for that, the first retry first
}

// Earlier is a retry of hosts that are left out of a later one.
type Earlier struct {
	Task     jobs.TaskID `json:"task"`
	Operator string      `json:"operator"`
	Proven   bool        `json:"proven"`
	At       jobs.Time   `json:"at"`       // when it was asked for
	Hosts    string      `json:"hosts"`    // those that are left out, folded
	Count    int         `json:"count"`    // of them
	Open     int         `json:"open"`     // their jobs in it that have not ended
	Outcomes jobs.Counts `json:"outcomes"` // how the others ended, as far as is known
}

// LeftOut is what a selector meant and did not get.
type LeftOut struct {
	Drained string `json:"left_out_drained,omitempty"` // folded; a selector that mentions drained gets them
	Gone    string `json:"left_out_gone,omitempty"`    // of earlier tasks, in the inventory no more; folded
	Closed  string `json:"left_out_closed,omitempty"`  // no opening is known for them; folded
}
