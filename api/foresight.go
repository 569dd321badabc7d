package api

import (
	"time"

	"muster/jobs"
)

// Plan is the forecast of a task that was not submitted yet.
type Plan struct {
	ID       string    `json:"plan"`
	At       jobs.Time `json:"at"` // when it was made
	Runbook  string    `json:"runbook"`
	On       string    `json:"on"`
	Operator string    `json:"operator"`
	Hosts    int       `json:"hosts"`
	Never    int       `json:"never"` // hosts on which the task would not run
	Start    jobs.Time `json:"start"` // the earliest time that was asked for; not set: at once
	Done     jobs.Time `json:"done"`  // when the last host would be done; not set: none would
}

// Compared is a plan together with the real course of its task.
type Compared struct {
	Plan
	Task     jobs.TaskID   `json:"task"`
	State    string        `json:"state"`
	Expected time.Duration `json:"expected_ns"` // time from the submit to the end
	Actual   time.Duration `json:"actual_ns"`   // 0: the task has not ended
	// Off is the actual time divided by the expected time; 0: not known.
	Off    float64 `json:"off"`
	Hosts  int     `json:"task_hosts"` // hosts of the task in the end
	Undone int     `json:"undone"`     // hosts among them that did not succeed
}

// Calibration measures the quality of plans.
type Calibration struct {
	Plans    int        `json:"plans"`    // number of plans made
	Compared []Compared `json:"compared"` // plans that became a task, the last first
	// Median is the median of Off over the ended tasks; 0: there are none.
	Median float64 `json:"median"`
	// Wrong counts the ended tasks that took more than twice or less than half as long as planned.
	Wrong int `json:"wrong"`
}

// WrongBy is the factor by which a task may take longer, or shorter, than planned before its plan
// counts as wrong.
const WrongBy = 2

// Foresight is the answer of POST /v1/plan: the time at which a task would be done if it were
// submitted now.
type Foresight struct {
	Plan
	Begins   jobs.Time      `json:"begins"` // null: no job begins
	Half     jobs.Time      `json:"half"`   // when half of the hosts that will be done are done
	Openings []FilledWindow `json:"openings"`
	Left     []LeftHosts    `json:"left"`  // hosts on which the task would not run
	Slots    []SlotNeed     `json:"slots"` // only for work in windows
	Others   []OtherTask    `json:"others"`
	Takes    []TakenTime    `json:"takes"`
	Notes    []string       `json:"notes"`
}

// TakenTime is the duration that the plan assumes for hosts of a model and customer: the estimate
// of the hub, with which workers admit their jobs.
type TakenTime struct {
	Model     string  `json:"model"`
	Customer  string  `json:"customer"`
	Hosts     int     `json:"hosts"`
	Usual     float64 `json:"seconds"`     // the p50 of the last successes
	Most      float64 `json:"seconds_p90"` // an opening must be at least so long
	Successes int     `json:"successes"`   // number of successes behind the estimate; 0: the duration was given

	// Unsaid means that nobody knows the duration: the task never succeeded there, and neither the
	// runbook nor the caller gives it. The times are then the bound of an attempt.
	Unsaid bool `json:"unsaid,omitempty"`
}

// FilledWindow is an opening with the number of hosts that the task completes in it.
type FilledWindow struct {
	Start   jobs.Time `json:"start"`
	End     jobs.Time `json:"end"`
	Windows []string  `json:"windows"`
	Hosts   int       `json:"hosts"`
}

// LeftHosts are hosts on which the task would not run, for one reason.
type LeftHosts struct {
	Count int    `json:"count"`
	Hosts string `json:"hosts"` // folded
	Why   string `json:"why"`
}

// SlotNeed compares the slots of a zone with the slots that would complete all hosts in their first
// opening, at least.
type SlotNeed struct {
	Zone  string `json:"zone"`
	Slots int    `json:"slots"`
	Want  int    `json:"want"`
}

// OtherTask is a task in the queue, with the time at which it would be done.
type OtherTask struct {
	Task     jobs.TaskID `json:"task"`
	Runbook  string      `json:"runbook"`
	Operator string      `json:"operator"`
	Waiting  int         `json:"waiting"` // its jobs that have not ended
	Done     jobs.Time   `json:"done"`    // null: none of them will be done
	Left     int         `json:"left"`    // jobs among them that will not be done
}
