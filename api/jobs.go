package api

import "muster/jobs"

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
	Asked
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

// GateList is the answer of GET /v1/gates.
type GateList struct {
	Total int        `json:"total"` // jobs that stand at a gate
	Gates []Standing `json:"gates"` // at most 1000 of them, those of older tasks first
}

// Standing is a job that stands at a gate.
type Standing struct {
	Job      jobs.ID     `json:"job"`
	Task     jobs.TaskID `json:"task"`
	Host     string      `json:"host"`
	Runbook  string      `json:"runbook"`
	Operator string      `json:"operator"` // of the task
	State    jobs.State  `json:"state"`
	jobs.Gate
}

// GateRequest is the body of POST /v1/tasks/{task}/gates/open and …/refuse. Without jobs and
// hosts it is about all jobs of the task that stand at a gate.
type GateRequest struct {
	OrderRequest
	Jobs  []jobs.ID `json:"jobs,omitempty" maxItems:"10000" nullable:"false"`  // of this task
	Hosts []string  `json:"hosts,omitempty" maxItems:"10000" nullable:"false"` // whose jobs of this task
}
