package api

import "muster/jobs"

// Submit is the body of POST /v1/tasks. With the id of an earlier submit, the same body completes
// that submit and gets the same answer.
type Submit struct {
	ID      string            `json:"id,omitempty"`      // task id; made by the server if empty
	Runbook string            `json:"runbook"`           // name of a runbook
	On      string            `json:"on"`                // selector; an empty selection is an error
	Args    map[string]string `json:"args,omitempty"`    // arguments of the runbook
	Files   map[string][]byte `json:"files,omitempty"`   // contents of the arguments of type file
	Secrets map[string]string `json:"secrets,omitempty"` // arguments of type secret, and become.password; stored sealed
	At      jobs.Time         `json:"at,omitzero"`       // the earliest start; at once if not set
	Expire  string            `json:"expire,omitempty"`  // time after which a job that has not started expires (8h)
	As      string            `json:"as,omitempty"`      // another operator; in muster demo only
	DryRun  bool              `json:"dry_run,omitempty"` // answer what would be done, do nothing
	// Priority is high, normal or low: the task's share of an overloaded queue.
	Priority string `json:"priority,omitempty"`
	Manner
	// Supersedes is a key: jobs that older tasks with this key have queued on the same hosts end,
	// superseded by this task.
	Supersedes string `json:"supersedes,omitempty"`
	// Rollout controls waves and failures; not set: all hosts at once, whatever fails.
	Rollout *jobs.RolloutAsk `json:"rollout,omitempty"`
	Timed
}

// Manner says in which mode a runbook runs, and on how many of the hosts.
type Manner struct {
	// Only makes it a dry run on the hosts: it runs the checks before the first change, or also shows
	// what would change.
	Only string `json:"only,omitempty" enum:"check,diff"`
	// Disruptive makes the task disruptive whatever its runbook says; nothing makes it less so.
	Disruptive bool `json:"disruptive,omitempty"`
	// AllowedOnly leaves out hosts on which the caller may not run this; otherwise one of them is
	// enough to refuse the task.
	AllowedOnly bool `json:"allowed_only,omitempty"`
}

// Timed holds the rules of a submit about windows and freezes.
type Timed struct {
	// Window lets jobs begin only in approved windows of their hosts, whatever the runbook says;
	// nothing makes the rule weaker.
	Window bool `json:"window,omitempty"`
	// Expect is the time that a job takes on a host, such as 20m. It counts instead of the runbook's
	// value if no earlier success of the same runbook with the same arguments gives an estimate. Work
	// that needs a window is refused if no source gives a time.
	Expect string `json:"expect,omitempty"`
	// SkipClosed leaves out hosts without a known opening. Otherwise they are a mistake.
	SkipClosed bool `json:"skip_closed,omitempty"`
	// OverrideFreeze is the reason why the task ignores freezes. It is stored as an event.
	OverrideFreeze string `json:"override_freeze,omitempty" maxLength:"500"`
}

// Submitted is the answer of POST /v1/tasks: 201 for a new task, 200 for an existing one and for a
// dry run. In the answer to a dry run task and state are empty, and Hosts lists the hosts that it
// would have.
type Submitted struct {
	jobs.TaskInfo
	Hosts   string `json:"hosts,omitempty"`   // folded: fw[001-300],vpn1
	Durable string `json:"durable,omitempty"` // how well Redis preserves the task
	Fences
	Windows *WindowPlan `json:"windows,omitempty"` // for a task that needs windows
	// Frozen are hosts, folded, on which the task does not begin at its time, and the reasons; those
	// in quarantine are left out. If the task needs windows, its openings already leave freezes out.
	Frozen []string `json:"frozen,omitempty"`
	// Follows is the chain that the task begins, if the submit asked for one.
	Follows *jobs.ChainInfo `json:"follows,omitempty"`
	LeftOut
}

// Fences lists the safeguards that the hosts of a task lack, as far as is known.
type Fences struct {
	// Unfenced are hosts, folded, that keep no record of attempts: if a worker is lost there, its step
	// ends unknown.
	Unfenced string `json:"unfenced,omitempty"`

	// Unmarked are the redundancy groups with a disturbed host of the task of which no member can
	// carry a marker: only one host at a time is disturbed there as long as Redis keeps its data.
	Unmarked []string `json:"unmarked,omitempty"`
}

// WindowPlan estimates when each host has its turn, if nothing else runs.
type WindowPlan struct {
	Seconds  float64          `json:"seconds"`         // time of the longest job
	Reserve  float64          `json:"reserve_seconds"` // time kept for going back
	Slots    int              `json:"slots"`           // jobs at a time on all nodes; 0: no node is up
	Openings []PlannedOpening `json:"openings"`
	Later    string           `json:"later,omitempty"` // hosts whose turn is after the last opening; folded
}

// PlannedOpening is an opening, and the hosts with a turn in it.
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
	// MaxFailed is the new total of jobs that may fail, N or P%; unchanged if empty.
	MaxFailed string `json:"max_failed,omitempty"`
	// Wave is the wave to open, which must be the next one; for an open wave nothing is done. 0: the
	// next, whatever its number.
	Wave int `json:"wave,omitempty" minimum:"0"`
}

// ChainList is the answer of GET /v1/chains.
type ChainList struct {
	Chains []jobs.ChainInfo `json:"chains"`
}

// CancelRequest is the body of POST /v1/tasks/{task}/cancel. Without jobs and hosts it cancels the
// whole task.
type CancelRequest struct {
	OrderRequest
	Jobs  []jobs.ID `json:"jobs,omitempty" maxItems:"10000" nullable:"false"`  // of this task
	Hosts []string  `json:"hosts,omitempty" maxItems:"10000" nullable:"false"` // on these hosts
}

// RetryRequest is the body of POST /v1/tasks/{task}/retry.
type RetryRequest struct {
	OrderRequest
	ID          string         `json:"id,omitempty"`           // of the new task; made by the server if empty
	Outcomes    []jobs.Outcome `json:"outcomes,omitempty"`     // of the jobs to do again; failed if empty
	SkipMissing bool           `json:"skip_missing,omitempty"` // leave out hosts that are gone
	DryRun      bool           `json:"dry_run,omitempty"`      // answer what would be done, do nothing
	Again       bool           `json:"again,omitempty"`        // also jobs that were retried from this task before
	// Expect is as in Timed; if empty, the value of the old task counts.
	Expect string `json:"expect,omitempty"`
}

// Retried is the answer of POST /v1/tasks/{task}/retry: the new task. Jobs that another task
// already does again are left out, unless the request wants them. If no job is left no task is
// made, Already is set, and the task is the earlier one, if there is exactly one.
type Retried struct {
	Submitted
	Open    int    `json:"open"`              // jobs of the old task that have not ended, and are left out
	Skipped string `json:"skipped,omitempty"` // hosts that are gone from the inventory, folded

	Already bool      `json:"already,omitempty"` // no task was made: all jobs are, or were, done again
	Earlier []Earlier `json:"earlier,omitempty"` // earlier retries whose hosts are left out, the first one first
}

// Earlier is a retry whose hosts are left out of a later one.
type Earlier struct {
	Task     jobs.TaskID `json:"task"`
	Operator string      `json:"operator"`
	Proven   bool        `json:"proven"`
	At       jobs.Time   `json:"at"`       // time of its submit
	Hosts    string      `json:"hosts"`    // its hosts that are left out, folded
	Count    int         `json:"count"`    // number of these hosts
	Open     int         `json:"open"`     // its jobs on them that have not ended
	Outcomes jobs.Counts `json:"outcomes"` // outcomes of its other jobs on them, as far as is known
}

// LeftOut lists hosts that a selector means and that the task does not get.
type LeftOut struct {
	Drained string `json:"left_out_drained,omitempty"` // folded; a selector that mentions drained gets them
	Gone    string `json:"left_out_gone,omitempty"`    // hosts of earlier tasks, gone from the inventory; folded
	Closed  string `json:"left_out_closed,omitempty"`  // hosts without a known opening; folded
}

// LaneInfo is a lane with its tasks in their order, as far as the caller sees them.
type LaneInfo struct {
	Key string `json:"key"`
	// Customer is the customer of the lane; empty: it is the house's.
	Customer string     `json:"customer,omitempty"`
	Stuck    string     `json:"stuck,omitempty"` // what a person must decide; empty: nothing
	Tasks    []LaneTask `json:"tasks"`
}

// LaneTask is a task in its lane.
type LaneTask struct {
	Task    jobs.TaskID `json:"task"`
	Runbook string      `json:"runbook"`
	By      string      `json:"by"`              // the operator
	Mode    string      `json:"mode"`            // serial, latest, gate, pipeline or parallel=N
	Since   jobs.Time   `json:"since"`           // when it entered
	State   string      `json:"state"`           // submitting, waiting, checking, running or failed
	Check   jobs.TaskID `json:"check,omitempty"` // its last check, for mode pipeline
	Why     string      `json:"why,omitempty"`
}

// LaneList is the answer of GET /v1/lanes.
type LaneList struct {
	Lanes []LaneInfo `json:"lanes"`
}
