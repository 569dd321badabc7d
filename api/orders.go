package api

import "muster/jobs"

// DrainRequest is the body of POST /v1/hosts/drain and /v1/hosts/undrain.
type DrainRequest struct {
	OrderRequest
	On string `json:"on"` // selector
}

// DrainAnswer is what a drain or undrain did.
type DrainAnswer struct {
	Changed string `json:"changed"` // hosts, folded: they were not so before
	Already string `json:"already"` // hosts, folded: they were so before
	Count   int    `json:"count"`   // hosts that changed
	Note    string `json:"note"`    // who and why
	// Labelled are hosts, folded, that are drained by a label of the inventory, which
	// only the inventory can end.
	Labelled string `json:"labelled,omitempty"`
	// Open are jobs of earlier tasks on the drained hosts, which go on: as far as they
	// were looked for.
	Open []jobs.ID `json:"open"`
}

// FsckRequest is the body of POST /v1/zones/{zone}/fsck.
type FsckRequest struct {
	OrderRequest
	Mend bool `json:"mend,omitempty"` // put right what can be
}

// OrderRequest is the body of every order: why it is given, and by whom. It may
// be left out where no reason is needed.
type OrderRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"500"` // for those who read it later
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
	// History says that what happens is not stored; not set: it is. It keeps nothing from
	// starting, and is not told with what keeps one task.
	History *AwayHistory `json:"history,omitempty"`
	// Lost says what Redis has lost of what was agreed, so that nothing starts and lists of
	// windows, freezes and schedules show less than there was. Empty: nothing.
	Lost string `json:"lost,omitempty"`
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
