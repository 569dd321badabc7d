package api

import (
	"time"

	"muster/jobs"
)

// Plan is what was foretold of a task that was not submitted yet.
type Plan struct {
	ID       string    `json:"plan"`
	At       jobs.Time `json:"at"` // when it was made
	Runbook  string    `json:"runbook"`
	On       string    `json:"on"`
	Operator string    `json:"operator"`
	Hosts    int       `json:"hosts"`
	Never    int       `json:"never"` // hosts that would not be done
	Start    jobs.Time `json:"start"` // not before, as it was asked for; not set: at once
	Done     jobs.Time `json:"done"`  // when the last host would be; not set: none would
}

// Compared is a plan, and what became of it.
type Compared struct {
	Plan
	Task     jobs.TaskID   `json:"task"`
	State    string        `json:"state"`
	Expected time.Duration `json:"expected_ns"` // from the submit to the end
	Actual   time.Duration `json:"actual_ns"`   // 0: it has not ended
	// Off is how many times as long it took; 0: that is not known.
	Off    float64 `json:"off"`
	Hosts  int     `json:"task_hosts"` // that the task was for in the end
	Undone int     `json:"undone"`     // of them, those that did not succeed
}

// Calibration says how good plans are.
type Calibration struct {
	Plans    int        `json:"plans"`    // that were made
	Compared []Compared `json:"compared"` // those that became a task, the last first
	// Median is that of Off, of those whose task has ended; 0: there are none.
	Median float64 `json:"median"`
	// Wrong is how many of them took more than twice or less than half as long.
	Wrong int `json:"wrong"`
}

// WrongBy is how many times as long, or as short, a task may take before its plan is
// called wrong.
const WrongBy = 2

// Foresight is the answer of POST /v1/plan: when a task would be done, were it
// submitted now.
type Foresight struct {
	Plan
	Begins   jobs.Time      `json:"begins"` // null: nothing of it does
	Half     jobs.Time      `json:"half"`   // when half of those that get done are
	Openings []FilledWindow `json:"openings"`
	Left     []LeftHosts    `json:"left"`  // hosts that would not be done
	Slots    []SlotNeed     `json:"slots"` // only of work in windows
	Others   []OtherTask    `json:"others"`
	Takes    []TakenTime    `json:"takes"`
	Notes    []string       `json:"notes"`
}

// TakenTime is how long the task is taken to need on hosts of a model and customer: the
// estimate of the hub, by which workers admit their jobs.
type TakenTime struct {
	Model     string  `json:"model"`
	Customer  string  `json:"customer"`
	Hosts     int     `json:"hosts"`
	Usual     float64 `json:"seconds"`     // the p50 of the last successes
	Most      float64 `json:"seconds_p90"` // so long an opening must be
	Successes int     `json:"successes"`   // that it comes from; 0: it was said

	// Unsaid: nobody knows. It never succeeded there, and neither the runbook nor who asks says it;
	// the times are the bound of an attempt.
	Unsaid bool `json:"unsaid,omitempty"`
}

// FilledWindow is an opening, and how many hosts of the task are done in it.
type FilledWindow struct {
	Start   jobs.Time `json:"start"`
	End     jobs.Time `json:"end"`
	Windows []string  `json:"windows"`
	Hosts   int       `json:"hosts"`
}

// LeftHosts are hosts that would not be done, for one reason.
type LeftHosts struct {
	Count int    `json:"count"`
	Hosts string `json:"hosts"` // folded
	Why   string `json:"why"`
}

// SlotNeed is how many slots a zone has, and how many would do all in the first opening
// of each host, at least.
type SlotNeed struct {
	Zone  string `json:"zone"`
	Slots int    `json:"slots"`
	Want  int    `json:"want"`
}

// OtherTask is a task of the queue, and when it would be done.
type OtherTask struct {
	Task     jobs.TaskID `json:"task"`
	Runbook  string      `json:"runbook"`
	Operator string      `json:"operator"`
	Waiting  int         `json:"waiting"` // its jobs that have not ended
	Done     jobs.Time   `json:"done"`    // null: none of them gets done
	Left     int         `json:"left"`    // of them, those that do not
}
