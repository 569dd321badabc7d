package jobs

import (
	"time"

	"muster/fleet"
	"muster/windows"
)

// Agreed names the version of windows, freezes and approvals in force, and Redis' time.
type Agreed struct {
	Version int64         // 0: there never was a timetable
	Mark    string        // as [windows.Timetable] has it
	Now     Micros        // Redis' TIME when it was read
	Skew    time.Duration // the clock of this machine minus that of Redis, as far as known
}

// Excerpts holds the windows, freezes and approvals for some scopes, in one version.
type Excerpts struct {
	Version int64
	Mark    string
	Parts   []*windows.Excerpt // in the order of the scopes
	// Table is all that is agreed, and Parts is empty: what is in force was written by a muster
	// that keeps no excerpts, or one that this muster cannot read.
	Table *windows.Timetable
}

// Estimate is the time that the same work takes on hosts of a kind, by its last successes.
type Estimate struct {
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	N   int           `json:"n"` // number of runs that it is made of
}

// EstimateField returns the name under which the hub keeps the estimate of some work, see WorkOf,
// on hosts like h: hosts of the same model, which is a label, and of the same customer.
func EstimateField(work string, h fleet.Host) string {
	return work + "|" + h.Labels["model"] + "|" + h.Customer
}

// Work is a name for what the task does on a host, see WorkOf. Of a task that does not
// say what it runs it is the runbook's, of which there is no estimate.
func (s Spec) Work() string {
	if s.Ran == nil {
		return s.Runbook
	}
	return s.Ran.Work
}

// Place returns the place of a host, as the package windows uses it.
func Place(h fleet.Host) windows.Place {
	return windows.Place{Host: h.Name, Group: h.Group, Site: h.Labels["site"], Customer: h.Customer}
}

// Alert is an event of a zone that a person should look at.
type Alert struct {
	Event  string // one word
	Object string // id of a job or task
	Detail map[string]any
}

// Move replaces the appointment of the job of a host by a new one.
type Move struct {
	Host    string
	Was, To Micros
}
