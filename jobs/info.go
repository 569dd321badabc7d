package jobs

import "time"

// Time is an instant for people and programs: RFC 3339 in UTC with
// milliseconds in JSON, null if it is not set.
type Time struct{ time.Time }

// timeForm is RFC 3339 with exactly three digits of fraction.
const timeForm = "2006-01-02T15:04:05.000Z07:00"

// TimeOf returns m as a Time.
func TimeOf(m Micros) Time { return Time{m.Time()} }

// String returns the form of the API; empty if t is not set.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeForm)
}

// MarshalJSON writes null or the form of the API.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.String() + `"`), nil
}

// UnmarshalJSON reads null or RFC 3339.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" || string(b) == `""` {
		t.Time = time.Time{}
		return nil
	}
	return t.Time.UnmarshalJSON(b)
}

// Counts holds the number of jobs of a task with each outcome; every outcome is a key.
type Counts map[Outcome]int

// NewCounts returns Counts with every outcome at 0.
func NewCounts() Counts {
	c := make(Counts, len(Outcomes()))
	for _, o := range Outcomes() {
		c[o] = 0
	}
	return c
}

// Sum returns the number of jobs that ended.
func (c Counts) Sum() int {
	n := 0
	for _, k := range c {
		n += k
	}
	return n
}

// Add adds the counts of o.
func (c Counts) Add(o Counts) {
	for k, n := range o {
		c[k] += n
	}
}

// TaskState is the state of a task.
type TaskState string

// The states of a task.
const (
	TaskSubmitting TaskState = "submitting" // not committed: no job of it may run
	TaskQueued     TaskState = "queued"     // no job of it has started
	TaskRunning    TaskState = "running"
	TaskPaused     TaskState = "paused"
	TaskStopped    TaskState = "stopped" // by its rule or a person: no further job begins
	TaskEnded      TaskState = "ended"   // every job has its outcome
	TaskAway       TaskState = "away"    // the Redis of a zone is away: numbers are of the others
)

// TaskInfo describes a task to people, summed over its zones.
type TaskInfo struct {
	Task      TaskID    `json:"task"`
	Runbook   string    `json:"runbook"`
	On        string    `json:"on"`
	Operator  string    `json:"operator"`
	Proven    bool      `json:"proven"`
	State     TaskState `json:"state"`
	Total     int       `json:"total"`
	Running   int       `json:"running"`
	Outcomes  Counts    `json:"outcomes"`
	Zones     []string  `json:"zones"`
	Inventory string    `json:"inventory"`

	// Redis has lost the task, and history knows of no end, so no more will run. State is the last
	// known.
	Forgotten bool `json:"forgotten,omitempty"`

	Orders
	Terms
	Span
}

// Orders holds what people ordered about a task after its submit, and the progress of its rollout.
type Orders struct {
	Cancelled string `json:"cancelled,omitempty"` // who and why, if it was cancelled
	// It was cancelled during its submit: no job of it was ever to run.
	CancelledInSubmit bool `json:"cancelled_in_submit,omitempty"`

	Paused  string       `json:"paused,omitempty"`  // who and why, if it is paused
	Rollout *RolloutInfo `json:"rollout,omitempty"` // nil: all hosts at once, however many fail
}

// Terms holds the other conditions of a task.
type Terms struct {
	Priority   Priority `json:"priority,omitempty"`    // its share of an overloaded queue
	Disruptive bool     `json:"disruptive"`            // each job holds the group of its host
	ProveGroup bool     `json:"prove_group,omitempty"` // continues in a group only after a success
	Supersedes string   `json:"supersedes,omitempty"`  // key: supersedes older queued jobs with it
	RetryOf    TaskID   `json:"retry_of,omitempty"`    // the task whose jobs it retries
	Reason     string   `json:"reason,omitempty"`      // the reason for the retry, for later readers
	Chain      TaskID   `json:"chain,omitempty"`       // the chain that it belongs to
	Schedule   string   `json:"schedule,omitempty"`    // the schedule that submitted it …
	Tick       Time     `json:"tick,omitzero"`         // … at this tick; not set: a person did
	Gates      bool     `json:"gates,omitempty"`       // one of its steps waits for a person
	Ran        *Ran     `json:"ran,omitempty"`         // nil: it is not known
}

// Span holds the times of a task.
type Span struct {
	Submitted Time    `json:"submitted"`
	Started   Time    `json:"started"`  // when the first job was taken
	Finished  Time    `json:"finished"` // when the last job ended
	Seconds   float64 `json:"seconds"`  // from submitted to finished, or to now
}

// JobInfo describes a job to people.
type JobInfo struct {
	ID       ID      `json:"id"`
	Host     string  `json:"host"`
	State    State   `json:"state"`
	Outcome  Outcome `json:"outcome"` // empty until it ended
	Class    Class   `json:"class,omitempty"`
	Attempt  int     `json:"attempt"`
	Node     string  `json:"node"`
	Due      Time    `json:"due"`
	Started  Time    `json:"started"`
	Finished Time    `json:"finished"`
	ExitCode *int    `json:"exit_code"`
	Error    string  `json:"error"`
	Step     int     `json:"step"`
	Tries    int     `json:"tries"`
	Aside
}

// Aside holds further facts about a job.
type Aside struct {
	// Note adds to the outcome: "attached", or the tools that its host lacks to keep a record. For a
	// job that waits it is the last message of its step.
	Note string `json:"note,omitempty"`
	// HostLeft: the host is not in the inventory any more, and the job has not ended.
	HostLeft bool `json:"host_left,omitempty"`
	// Times says how the job spent its time, in seconds; the present attempt is not counted yet.
	Times Times `json:"times,omitempty"`
	// Gate is the gate at which it waits for a person; nil: none.
	Gate *Gate `json:"gate,omitempty"`
	// Ask is the last order to ask its host how it ended; nil: there was none. It is set only if a
	// single job was asked for.
	Ask *Ask `json:"ask,omitempty"`
	Ahead
}

// Ahead says what a job waits for.
type Ahead struct {
	Next  Time   `json:"next"`            // earliest next action on it; null once it ended
	Waits string `json:"waits,omitempty"` // needed, and another's: host/x, group/x, a limit
	// Why explains in words why the job is not running: why it was deferred or is retried, which job
	// has what it needs, who paused it. It is complete only if a single job was asked for.
	Why string `json:"why,omitempty"`
}

// Cancel is the effect of a cancellation.
type Cancel struct {
	Task    TaskID `json:"task"`
	Ended   int    `json:"ended"`   // were not running: have the outcome cancelled now
	Running int    `json:"running"` // are being stopped on their hosts
	Already int    `json:"already"` // had ended before
}

// Happening is one entry of a zone's event stream.
type Happening struct {
	ID     string `json:"id"` // id of the stream entry
	Zone   string `json:"zone"`
	At     Time   `json:"at"`
	Event  string `json:"event"`
	Object string `json:"object"` // id of a job or task, or name of a node
	Detail any    `json:"detail,omitempty"`
}

// Sharing shows how a queue is shared.
type Sharing struct {
	Tasks     int       `json:"tasks"`  // tasks that have not ended
	Shares    []Share   `json:"shares"` // tasks with jobs that wait, the largest share first
	Reordered Reordered `json:"reordered"`
}

// Share is the share of a task in a queue.
type Share struct {
	Task     TaskID   `json:"task"`
	Operator string   `json:"operator"`
	Priority Priority `json:"priority"`
	Due      Time     `json:"due"`
	Waiting  int      `json:"waiting"` // neither ended nor running
	Running  int      `json:"running"`
	Total    int      `json:"total"`
}

// Reordered describes the last reordering of an overloaded queue. No times: there was none.
type Reordered struct {
	Now     bool       `json:"now"` // one is under way; the other fields describe the one before
	At      Time       `json:"at"`  // when it ended
	Seconds float64    `json:"seconds"`
	Moved   int        `json:"moved"`
	By      string     `json:"by,omitempty"` // node and slot
	End     ReorderEnd `json:"end,omitempty"`
	Next    Time       `json:"next"` // earliest time of the next one; null: it may begin now
}
