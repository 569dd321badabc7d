package server

import "muster/jobs"

// Whose is part of the input of those orders that need no name to be carried out: it is
// logged who gave them, as far as that is known.
type Whose struct {
	Asked
	User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
}

// note logs an order that was carried out.
func (w Whose) note(s *Server, done string, more ...any) {
	name, proven, err := operator(w.who, "", w.User)
	if err != nil { // the name that was sent is no name, or another's
		name, proven = w.who.name, w.who.name != ""
	}
	s.log.Info(done, append(more, "operator", name, "proven", proven)...)
}

// OrderRequest is the body of every order: why it is given, and by whom. It may
// be left out where no reason is needed.
type OrderRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"500"` // for those who read it later
	As     string `json:"as,omitempty"`                     // another operator; in muster demo only
}

// CancelRequest is the body of POST /v1/tasks/{task}/cancel. Without jobs and
// hosts it is about the whole task.
type CancelRequest struct {
	OrderRequest
	Jobs  []jobs.ID `json:"jobs,omitempty" maxItems:"10000" nullable:"false"`  // of this task
	Hosts []string  `json:"hosts,omitempty" maxItems:"10000" nullable:"false"` // whose jobs of this task
}

// RetryRequest is the body of POST /v1/tasks/{task}/retry.
type RetryRequest struct {
	OrderRequest
	ID          string         `json:"id,omitempty"`           // of the new task; made by the server if empty
	Outcomes    []jobs.Outcome `json:"outcomes,omitempty"`     // of the jobs to do again; failed if empty
	SkipMissing bool           `json:"skip_missing,omitempty"` // leave out hosts that are gone
	DryRun      bool           `json:"dry_run,omitempty"`      // answer what would be done, do nothing
	Again       bool           `json:"again,omitempty"`        // also what was retried from this task before
	// Expect is as that of Timed; if empty, what the old task was given holds.
	Expect string `json:"expect,omitempty"`
}

// Retried is the answer of POST /v1/tasks/{task}/retry: the new task. What another task
// does again already is not done once more, unless that is asked for. If nothing is left
// no task is made, Already is set, and the task is the earlier one, if it is one.
type Retried struct {
	Submitted
	Open    int    `json:"open"`              // jobs of the old task that have not ended, and are left out
	Skipped string `json:"skipped,omitempty"` // hosts that are gone from the inventory, folded

	Already bool      `json:"already,omitempty"` // no task was made: all of it is, or was, done again
	Earlier []Earlier `json:"earlier,omitempty"` // what is left out for that, the first retry first
}

// Earlier is a retry of hosts that are left out of a later one.
type Earlier struct {
	Task     jobs.TaskID `json:"task"`
	Operator string      `json:"operator"`
	Proven   bool        `json:"proven"`
	At       jobs.Time   `json:"at"`       // when it was asked for
	Hosts    string      `json:"hosts"`    // those that are left out, folded
	Count    int         `json:"count"`    // of them
	Open     int         `json:"open"`     // their jobs in it that have not ended
	Outcomes jobs.Counts `json:"outcomes"` // how the others ended, as far as is known
}

// Lifted is the answer of POST /v1/lift.
type Lifted struct {
	jobs.Switched
	Stay PauseList `json:"stay"` // what is still paused
}

// Thawed is the answer of POST /v1/zones/{zone}/thaw.
type Thawed struct {
	Zone    string `json:"zone"`
	Already bool   `json:"already"` // it was not frozen
	Note    string `json:"note"`
}

// PauseList is the answer of GET /v1/pauses.
type PauseList struct {
	jobs.Pauses
	Tasks map[jobs.TaskID]string `json:"tasks"` // paused task to who and why, if asked for
	// History says that what happens is not stored; not set: it is. It keeps nothing from
	// starting, and is not told with what keeps one task.
	History *AwayHistory `json:"history,omitempty"`
	// NoNode says of zones that no node begins anything there, since when, and what to do.
	NoNode map[string]string `json:"no_node"`
}

// GroupList is the answer of GET /v1/groups.
type GroupList struct {
	Groups []jobs.Group `json:"groups"`
}

// LimitList is the answer of GET /v1/limits.
type LimitList struct {
	Limits []jobs.Limit `json:"limits"`
}
