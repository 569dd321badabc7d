package api

import "muster/jobs"

// DrainRequest is the body of POST /v1/hosts/drain and /v1/hosts/undrain, and of quarantine and
// unquarantine.
type DrainRequest struct {
	OrderRequest
	On string `json:"on"` // selector
}

// DrainAnswer is the result of a drain or undrain.
type DrainAnswer struct {
	Changed string `json:"changed"` // hosts, folded, that the order changed
	Already string `json:"already"` // hosts, folded, that needed no change
	Count   int    `json:"count"`   // hosts that changed
	Note    string `json:"note"`    // who and why
	// Labelled are hosts, folded, that a label of the inventory drains; only the inventory can end
	// that.
	Labelled string `json:"labelled,omitempty"`
	// Open are jobs of earlier tasks on the drained hosts, which continue: those that a bounded search
	// found.
	Open []jobs.ID `json:"open"`
}

// QuarantineList is the answer of GET /v1/quarantine.
type QuarantineList struct {
	Hosts []Quarantined `json:"hosts"`
}

// Quarantined is a host that takes no job but checks.
type Quarantined struct {
	Host  string    `json:"host"`
	Zone  string    `json:"zone"`
	Since jobs.Time `json:"since"`
	Job   jobs.ID   `json:"job,omitempty"` // that ended unknown there; empty: a person ordered it
	Why   string    `json:"why"`           // the error of the job, or who ordered it and why
}

// FsckRequest is the body of POST /v1/zones/{zone}/fsck.
type FsckRequest struct {
	OrderRequest
	Mend bool `json:"mend,omitempty"` // correct what can be corrected
}

// OrderRequest is the body of every order: why it is given, and by whom. It may be left out if the
// order needs no reason.
type OrderRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"500"` // for people who read it later
	As     string `json:"as,omitempty"`                     // another operator; in muster demo only
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
	// History says since when events are not stored; not set: they are. That keeps no job from
	// starting, so the answer for one task leaves it out.
	History *AwayHistory `json:"history,omitempty"`
	// Lost says which agreements Redis has lost: nothing starts, and lists of windows, freezes and
	// schedules are incomplete. Empty: none.
	Lost string `json:"lost,omitempty"`
	// NoNode maps each zone without a working node to the time since when, and to what one can do.
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
