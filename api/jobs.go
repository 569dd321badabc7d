package api

import "muster/jobs"

// JobList is one page of the answer of GET /v1/tasks/{task}/jobs.
type JobList struct {
	Jobs []jobs.JobInfo `json:"jobs"`
	Next string         `json:"next,omitempty"` // cursor of the next page; empty: this was the last
}

// JobDetail is the answer of GET /v1/jobs/{job}.
type JobDetail struct {
	jobs.JobInfo
	Of     *OfTask           `json:"of,omitempty"`     // nil: its task is no longer known
	Awaits *jobs.Appointment `json:"awaits,omitempty"` // the window or freeze that it waits for; nil: none
}

// OfTask describes the request that made the task of a job.
type OfTask struct {
	Task     jobs.TaskID `json:"task"`
	Runbook  string      `json:"runbook"`
	Operator string      `json:"operator"`
	Asked
	Traces *Traces `json:"traces,omitempty"` // nil: the server sends none
}

// Traces names the traces of OpenTelemetry about a job, as a collector shows them.
type Traces struct {
	Job  string `json:"job"`
	Task string `json:"task"` // with the submit: that of the caller, or one of its own
	// Sent reports whether the one of the job is sent once it has ended; nil: that depends on its
	// outcome. The collector may not have taken it.
	Sent *bool `json:"sent"`
}

// Alike is the part of a task's jobs that ended in the same way: same outcome, same exit code and
// the same output, byte for byte, or, without output, the same error.
type Alike struct {
	Outcome  jobs.Outcome `json:"outcome"`
	ExitCode *int         `json:"exit_code"`
	Count    int          `json:"count"`
	Hosts    string       `json:"hosts"` // folded: fw[001-300],vpn1
	Error    string       `json:"error,omitempty"`
	Output   []byte       `json:"output,omitempty"`  // its beginning, as the hosts sent it
	LeftOut  int          `json:"left_out"`          // bytes of output that are not shown
	Example  jobs.ID      `json:"example,omitempty"` // a job of the group, for `muster logs`
	Proof    Proof        `json:"proof,omitempty"`   // none: the ends of the group are not proven
}

// Summary is the answer of GET /v1/tasks/{task}/summary: biggest group first.
type Summary struct {
	Task    jobs.TaskInfo `json:"task"`
	Groups  []Alike       `json:"groups"`
	AtGates int           `json:"at_gates,omitempty"` // jobs at a gate that nobody has answered
	Waits   []jobs.Lack   `json:"waits,omitempty"`    // why its jobs do not run, except for windows
	// Awaits lists the windows and freezes that its jobs wait for, the first opening first.
	Awaits []jobs.Appointment `json:"awaits,omitempty"`
}

// LackList is the answer of GET /v1/tasks/{task}/waits.
type LackList struct {
	Waits []jobs.Lack `json:"waits"`
	// Awaits lists the windows and freezes that jobs wait for.
	Awaits []jobs.Appointment `json:"awaits,omitempty"`
}

// Said is output of a host, an event of GET /v1/tasks/{task}/output.
type Said struct {
	Job  jobs.ID `json:"job"`
	Host string  `json:"host"`
	At   int64   `json:"at"` // position of the data; if it is behind the known end, bytes are missing
	Data []byte  `json:"data"`
}

// JobEnd reports the end of a job, an event of GET /v1/tasks/{task}/output.
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
	EventOver    = "over"    // jobs.TaskInfo: the last event
)

// GateList is the answer of GET /v1/gates.
type GateList struct {
	Total int        `json:"total"` // jobs that wait at a gate
	Gates []Standing `json:"gates"` // at most 1000 of them, older tasks first
}

// Standing is a job that waits at a gate.
type Standing struct {
	Job      jobs.ID     `json:"job"`
	Task     jobs.TaskID `json:"task"`
	Host     string      `json:"host"`
	Runbook  string      `json:"runbook"`
	Operator string      `json:"operator"` // of the task
	State    jobs.State  `json:"state"`
	jobs.Gate
}

// GateRequest is the body of POST /v1/tasks/{task}/gates/open and …/refuse. Without jobs and hosts
// it answers for all jobs of the task that wait at a gate.
type GateRequest struct {
	OrderRequest
	Jobs  []jobs.ID `json:"jobs,omitempty" maxItems:"10000" nullable:"false"`  // of this task
	Hosts []string  `json:"hosts,omitempty" maxItems:"10000" nullable:"false"` // on these hosts
}
