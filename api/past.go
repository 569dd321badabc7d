package api

import "muster/jobs"

// PastJob is a job that has ended. What is not known is empty.
type PastJob struct {
	jobs.JobInfo
	Zone     string      `json:"zone"`
	Customer string      `json:"customer"`
	Model    string      `json:"model"`
	Runbook  string      `json:"runbook"`
	Operator string      `json:"operator"`
	Output   jobs.Output `json:"-"`
	// Asked is what its task was asked for; nil: that is not known, or stands beside it.
	Asked *Asked `json:"asked,omitempty"`
}

// Gap is a part of a stream that was gone before it was read.
type Gap struct {
	Zone    string    `json:"zone"`
	After   string    `json:"after"`   // the last entry that was read before
	First   string    `json:"first"`   // the first that was still there; empty: none
	Entries int64     `json:"entries"` // that are missing; -1: not known
	At      jobs.Time `json:"at"`      // when it was noticed
	Note    string    `json:"note"`

	Back bool `json:"-"` // Redis has forgotten what history knows
}

// Attempt is one try at a job.
type Attempt struct {
	Attempt int       `json:"attempt"`
	Node    string    `json:"node"`
	Started jobs.Time `json:"started"`
	Ended   jobs.Time `json:"ended"`
	How     string    `json:"how"` // an outcome, or retry, wait, verify, defer, back, lost
}

// StepBegun is a step of a runbook that a job began, after the first.
type StepBegun struct {
	Step int       `json:"step"` // counted from 0
	At   jobs.Time `json:"at"`
}

// Course is what is kept of the way of a job to its end.
type Course struct {
	Attempts []Attempt   `json:"attempts"`
	Steps    []StepBegun `json:"steps"`
}

// PageMax is how many jobs are listed at once.
const PageMax = 500

// Position is how far the stream of a zone was read. Last is empty at its beginning.
type Position struct {
	Zone    string    `json:"zone"`
	Last    string    `json:"last"`
	Entries int64     `json:"entries"` // counted by Redis; -1: not known
	Events  int64     `json:"events"`  // that were stored
	At      jobs.Time `json:"at"`      // when
}

// Asked is what the task of a job was asked for. Ran is nil if it
// was not kept.
type Asked struct {
	On     string    `json:"on"`
	Proven bool      `json:"proven"`
	Reason string    `json:"reason,omitempty"`
	Ran    *jobs.Ran `json:"ran,omitempty"`
}

// Spent is how much time the jobs of a task spent on one use, in seconds.
type Spent struct {
	Use  jobs.Use `json:"use"`
	Jobs int      `json:"jobs"` // that spent any; the rest is of those
	Sum  float64  `json:"sum"`
	P50  float64  `json:"p50"`
	P90  float64  `json:"p90"`
	Max  float64  `json:"max"`
}

// PastEvents is the answer of GET /v1/history/events, a page of it, the first event first.
type PastEvents struct {
	Events []jobs.Happening `json:"events"`
	Next   string           `json:"next,omitempty"` // cursor of the next page; empty: this was the last
}

// PastJobs is the answer of GET /v1/history, a page of it, the last one first.
type PastJobs struct {
	Jobs []PastJob `json:"jobs"`
	Next string    `json:"next,omitempty"` // cursor of the next page; empty: this was the last
}

// HistoryState is the answer of GET /v1/history/state.
type HistoryState struct {
	Where   string     `json:"where"`
	Streams []Position `json:"streams"` // how far each was read
	Gaps    []Gap      `json:"gaps"`    // what was gone before, the last first
}
