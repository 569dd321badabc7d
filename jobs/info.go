package jobs

import (
	"time"
)

// Time is an instant for people and programs: RFC 3339 in UTC with
// milliseconds in JSON, null if it is not set.
type Time struct{ time.Time }

// timeForm is RFC 3339 with exactly three digits of fraction.
const timeForm = "2006-01-02T15:04:05.000Z07:00"

// TimeOf is m for people.
func TimeOf(m Micros) Time { return Time{m.Time()} }

// String is the form of the API; empty if t is not set.
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

// Counts is how many jobs of a task have which outcome; every outcome is a key.
type Counts map[Outcome]int

// NewCounts has every outcome at 0.
func NewCounts() Counts {
	c := make(Counts, len(Outcomes()))
	for _, o := range Outcomes() {
		c[o] = 0
	}
	return c
}

// Sum is the number of jobs that ended.
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

// TaskState is where a task stands.
type TaskState string

// The states of a task.
const (
	TaskSubmitting TaskState = "submitting" // not committed: nothing of it runs
	TaskQueued     TaskState = "queued"     // nothing of it started
	TaskRunning    TaskState = "running"
	TaskPaused     TaskState = "paused"
	TaskStopped    TaskState = "stopped" // by its rule or a person: no further job begins
	TaskEnded      TaskState = "ended"   // every job has its outcome
)

// TaskInfo is a task as people see it, summed over its zones.
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

	// Redis has lost it, and history knows of no end: no more will come of it. State is
	// the last one that was heard of.
	Forgotten bool `json:"forgotten,omitempty"`

	Orders
	Terms
	Span
}

// Orders are what people ordered of a task since, and how far it has gone by its rule.
type Orders struct {
	Cancelled string `json:"cancelled,omitempty"` // who and why, if it was
	// It was cancelled while it was submitted: nothing of it was ever to run.
	CancelledInSubmit bool `json:"cancelled_in_submit,omitempty"`

	Paused  string       `json:"paused,omitempty"`  // who and why, if it is
	Rollout *RolloutInfo `json:"rollout,omitempty"` // nil: all at once, whatever fails
}

// Terms are what else a task was asked with.
type Terms struct {
	Priority   Priority `json:"priority,omitempty"`    // its share while a queue is overloaded
	Disruptive bool     `json:"disruptive"`            // holds its host's group
	ProveGroup bool     `json:"prove_group,omitempty"` // goes on in a group after a success only
	Supersedes string   `json:"supersedes,omitempty"`  // key: ends queued jobs of older tasks with it
	RetryOf    TaskID   `json:"retry_of,omitempty"`    // the task whose jobs it does again
	Reason     string   `json:"reason,omitempty"`      // why it does, for those who read it later
	Chain      TaskID   `json:"chain,omitempty"`       // the chain that it is a part of
	Schedule   string   `json:"schedule,omitempty"`    // that asked for it …
	Tick       Time     `json:"tick,omitzero"`         // … at this tick; not set: a person did
	Gates      bool     `json:"gates,omitempty"`       // a step of it waits for a person
	Ran        *Ran     `json:"ran,omitempty"`         // nil: it is not known
}

// Span is when a task was at work.
type Span struct {
	Submitted Time    `json:"submitted"`
	Started   Time    `json:"started"`  // first job taken
	Finished  Time    `json:"finished"` // last job ended
	Seconds   float64 `json:"seconds"`  // from submitted to finished, or to now
}

// JobInfo is a job as people see it.
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

// Aside is what else there is to know of a job.
type Aside struct {
	// Note is how it ended: "attached", or what its host lacks to keep a record; of a job that
	// waits what it said last.
	Note string `json:"note,omitempty"`
	// HostLeft says that the host is in the inventory no more, and the job not over.
	HostLeft bool `json:"host_left,omitempty"`
	// Times is what its time went to, in seconds; the attempt in hand is not counted yet.
	Times Times `json:"times,omitempty"`
	// Gate is the gate at which it stands, until a person answers; nil: none.
	Gate *Gate `json:"gate,omitempty"`
	// Ask is the last order to ask its host how it ended; nil: there was none. Only for one job
	// is it looked up.
	Ask *Ask `json:"ask,omitempty"`
	Ahead
}

// Ahead is what a job waits for.
type Ahead struct {
	Next  Time   `json:"next"`            // when it may be touched next; null once it ended
	Waits string `json:"waits,omitempty"` // what it needs and another has: host/x, group/x, a limit
	// Why says why it does not run, or who stops it, in words: why it was deferred or is
	// tried again, who has what it needs, who ordered that it stands. Only for one job is
	// all of it looked up.
	Why string `json:"why,omitempty"`
}

// Cancel is what a cancellation did.
type Cancel struct {
	Task    TaskID `json:"task"`
	Ended   int    `json:"ended"`   // were not running: have the outcome cancelled now
	Running int    `json:"running"` // are being stopped on their hosts
	Already int    `json:"already"` // had ended before
}

// Happening is one entry of a zone's event stream.
type Happening struct {
	ID     string `json:"id"` // of the stream entry
	Zone   string `json:"zone"`
	At     Time   `json:"at"`
	Event  string `json:"event"`
	Object string `json:"object"` // id of a job or task, or name of a node
	Detail any    `json:"detail,omitempty"`
}

// Sharing is who shares a queue, and how.
type Sharing struct {
	Tasks     int       `json:"tasks"`  // that have not ended
	Shares    []Share   `json:"shares"` // of those with jobs that wait, the largest first
	Reordered Reordered `json:"reordered"`
}

// Share is what a task has in a queue.
type Share struct {
	Task     TaskID   `json:"task"`
	Operator string   `json:"operator"`
	Priority Priority `json:"priority"`
	Due      Time     `json:"due"`
	Waiting  int      `json:"waiting"` // neither ended nor running
	Running  int      `json:"running"`
	Total    int      `json:"total"`
}

// Reordered is the last reordering of an overloaded queue. Its times are not set
// if there was none.
type Reordered struct {
	Now     bool       `json:"now"` // there is one at this moment; the rest tells of the one before
	At      Time       `json:"at"`  // when it was over
	Seconds float64    `json:"seconds"`
	Moved   int        `json:"moved"`
	By      string     `json:"by,omitempty"` // node and slot
	End     ReorderEnd `json:"end,omitempty"`
	Next    Time       `json:"next"` // there is none before; null: there may be one now
}
