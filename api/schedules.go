package api

import (
	"muster/jobs"
	"muster/windows"
)

// ApplySchedules is the body of POST /v1/schedules: files of schedules, in the form of
// windows.ParseSchedules.
type ApplySchedules struct {
	OrderRequest
	windows.Pruning
	Basis string         `json:"basis,omitempty"` // from an earlier check: what the caller has seen
	Files []windows.File `json:"files"`
	Check bool           `json:"check,omitempty"` // only report what would be done
}

// Change is the effect of a file on a schedule.
type Change string

// The changes.
const (
	Added     Change = "added"
	Changed   Change = "changed"
	Unchanged Change = "unchanged"
	Removed   Change = "removed" // pruned: its tasks continue
)

// AppliedSchedule is the change that was made to a schedule, or would be.
type AppliedSchedule struct {
	Name        string    `json:"name"`
	Change      Change    `json:"change"`
	Differences []string  `json:"differences"` // field: old → new
	Next        jobs.Time `json:"next"`
	// Refused is the reason why a tick at this moment would have no task.
	Refused string `json:"refused,omitempty"`
	// Notes warn the author about surprising times, if the times are new.
	Notes []string `json:"notes,omitempty"`
}

// AppliedSchedules is the answer of POST /v1/schedules.
type AppliedSchedules struct {
	Check     bool              `json:"check"`
	Schedules []AppliedSchedule `json:"schedules"`
	Left      []string          `json:"left,omitempty"` // of the same owners, not in the files: they stay
	Basis     string            `json:"basis"`          // the value to send after a check
}

// ScheduleInfo is a schedule with its progress.
type ScheduleInfo struct {
	jobs.Schedule
	Next  jobs.Time    `json:"next"` // the next tick; null: there is none
	Ticks jobs.Ticking `json:"ticks"`
}

// TurnedSchedule is the answer of POST /v1/schedules/{schedule}/pause and /resume.
type TurnedSchedule struct {
	Name    string    `json:"name"`
	Paused  string    `json:"paused,omitempty"` // who paused it and why; empty: nobody did
	Enabled bool      `json:"enabled"`
	Next    jobs.Time `json:"next"`    // the next tick; null: there is none
	Already bool      `json:"already"` // it was so before; the order changed nothing
}

// ScheduleList is the answer of GET /v1/schedules.
type ScheduleList struct {
	Schedules []ScheduleInfo `json:"schedules"`
}

// Tick is a time at which a schedule is due.
type Tick struct {
	At    jobs.Time `json:"at"`
	Local string    `json:"local"` // the same time in the zone of the schedule, with its offset
}

// TickList is the answer of GET /v1/schedules/{schedule}/next.
type TickList struct {
	Schedule string  `json:"schedule"`
	Zone     string  `json:"zone"`
	Jitter   float64 `json:"jitter"`           // seconds by which its tasks begin later
	Stands   string  `json:"stands,omitempty"` // why the schedule has no ticks at the moment
	Ticks    []Tick  `json:"ticks"`
}

// RunSchedule is the body of POST /v1/schedules/{schedule}/run. A repetition with the same id gives
// the same task.
type RunSchedule struct {
	ID string `json:"id,omitempty"`
	As string `json:"as,omitempty"` // another operator; in muster demo only
}
