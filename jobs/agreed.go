package jobs

import (
	"time"

	"muster/fleet"
	"muster/windows"
)

// Agreed says which version of windows, freezes and approvals is in force, and what time it
// is by Redis.
type Agreed struct {
	Version int64 // 0: nothing was ever agreed

	Now  Micros        // Redis' TIME at the reading
	Skew time.Duration // the clock of this machine less that of Redis, as near as is known
}

// Excerpts are what is agreed for some scopes, at one version of it.
type Excerpts struct {
	Version int64
	Parts   []*windows.Excerpt // in the order of the scopes

	// Table is all that is agreed, and Parts is empty: what is in force was written by a muster
	// that keeps no excerpts, or one that this muster cannot read.
	Table *windows.Timetable
}

// Estimate is how long the same work takes on hosts of a kind, by its last successes.
type Estimate struct {
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	N   int           `json:"n"` // runs that it is made of
}

// EstimateField is under which name the hub keeps the estimate of some work, see WorkOf, for
// hosts like h: of the same model, which is their label, and the same customer.
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

// Place is where a host is, as windows know it.
func Place(h fleet.Host) windows.Place {
	return windows.Place{Host: h.Name, Group: h.Group, Site: h.Labels["site"], Customer: h.Customer}
}

// Alert is something that somebody should look at, as an event of a zone.
type Alert struct {
	Event  string // one word
	Object string // id of a job or task
	Detail map[string]any
}

// Move is a new appointment of the job of a host, and the one that it had.
type Move struct {
	Host    string
	Was, To Micros
}
