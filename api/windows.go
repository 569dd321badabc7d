package api

import (
	"muster/jobs"
	"muster/windows"
)

// WindowsRequest is the body of PUT /v1/windows: files of windows. Entries of the files are added,
// or replace entries of the same name; other entries stay, unless they are pruned.
type WindowsRequest struct {
	OrderRequest
	windows.Pruning
	Expected
	Files    []windows.File `json:"files"`
	Attached []windows.File `json:"attached,omitempty"` // files that "ics" names
	Check    bool           `json:"check,omitempty"`    // answer what would change, do nothing
}

// WindowsChanged is the answer to each change of the timetable.
type WindowsChanged struct {
	Version int64 `json:"version"` // of the timetable from now on
	Already bool  `json:"already"` // there was nothing to do
	windows.Change
	Notes []string `json:"notes"` // possible mistakes in what was added or changed

	// For applied files: Left lists entries of the same customers that the files do not name, and
	// which stay; Basis is the value to send after a check.
	Left  []string `json:"left,omitempty"`
	Basis string   `json:"basis,omitempty"`
}

// WindowInfo describes a window of the timetable.
type WindowInfo struct {
	Name   string   `json:"name"`
	For    string   `json:"for"` // as "customer acme"
	Zone   string   `json:"zone"`
	Starts []string `json:"starts"` // cron text, words, dates, names of events
	WindowSpan
	Runbooks []string    `json:"runbooks"` // empty: all that need a window
	AtEnd    string      `json:"at_end"`
	OnChange string      `json:"on_change"`
	Approval string      `json:"approval"` // required or none
	Hash     string      `json:"hash"`     // hash of the content that an approval covers
	Next     *Occurrence `json:"next"`     // null: it does not open again

}

// WindowSpan holds the length of a window and its validity.
type WindowSpan struct {
	Length string `json:"length,omitempty"` // or
	End    string `json:"end,omitempty"`    // by the clock
	Cutoff string `json:"cutoff"`
	From   string `json:"from,omitempty"`
	Until  string `json:"until,omitempty"`

	Except []string `json:"except,omitempty"` // days on which it does not open
}

// Occurrence is one occurrence of a window.
type Occurrence struct {
	Window     string    `json:"window"`
	Start      jobs.Time `json:"start"`
	End        jobs.Time `json:"end"`
	Cutoff     jobs.Time `json:"cutoff"`       // no job begins from here on
	LocalStart string    `json:"local_start"`  // on the clocks of the window's zone
	LocalEnd   string    `json:"local_end"`    // on the same clocks
	Zone       string    `json:"zone"`         // of the window
	Approved   bool      `json:"approved"`     // true also if no approval is needed
	Approval   string    `json:"approval"`     // its id; empty: none
	Frozen     string    `json:"frozen_by"`    // a freeze at its start; empty: none
	Seconds    float64   `json:"open_seconds"` // from start to end
}

// FreezeInfo describes a freeze. For a freeze with events, from and until belong to the present or
// next event; both are null if there is none any more.
type FreezeInfo struct {
	Name    string    `json:"name"`
	For     string    `json:"for"`
	Reason  string    `json:"reason"`
	From    jobs.Time `json:"from"`
	Until   jobs.Time `json:"until"`  // null, and not over: until somebody lifts it
	Ordered string    `json:"by"`     // who ordered it by hand; empty: it is in a file
	Active  bool      `json:"active"` // it is in force now
	Over    bool      `json:"over"`   // it will not be in force again

}

// WindowList is the answer of GET /v1/windows.
type WindowList struct {
	Version   int64              `json:"version"`
	Windows   []WindowInfo       `json:"windows"`
	Freezes   []FreezeInfo       `json:"freezes"`
	Approvals []windows.Approval `json:"approvals"`
	Void      []string           `json:"void"` // approvals of windows that were changed since
	// Timetable is the whole timetable as it was written, for programs that compute with it. It is
	// empty, and Version is 0, for callers who do not see all hosts.
	Timetable windows.Timetable `json:"timetable"`
	Hash      string            `json:"hash"`            // of the whole timetable
	Doubt     string            `json:"doubt,omitempty"` // why it is not believed; empty: it is
}

// AdoptRequest is the body of POST /v1/windows/adopt.
type AdoptRequest struct {
	OrderRequest
	Hash    string `json:"hash,omitempty"`    // of the timetable that was shown; another one is refused
	Discard bool   `json:"discard,omitempty"` // sign an empty timetable in its place
}

// OccurrenceList is the answer of GET /v1/windows/{window}/next and of
// GET /v1/hosts/{host}/next.
type OccurrenceList struct {
	Occurrences []Occurrence `json:"occurrences"`
}

// HostWindows is the answer of GET /v1/hosts/{host}/windows: the windows that apply to a host, and
// why.
type HostWindows struct {
	Host    string       `json:"host"`
	Level   string       `json:"level"` // of the windows that apply
	Windows []WindowInfo `json:"windows"`
	Hidden  []WindowInfo `json:"hidden"` // would apply if no more special level had windows
	// Others do not apply: they belong to other customers, or the host's customer never approved them.
	Others  []WindowInfo `json:"others"`
	Freezes []FreezeInfo `json:"freezes"`
	Now     HostVerdict  `json:"now"`
}

// HostVerdict says whether work that needs a window may start at a host now.
type HostVerdict struct {
	Open  bool      `json:"open"`
	Until jobs.Time `json:"until"` // end of the opening; null, and open: not within 400 days
	Next  jobs.Time `json:"next"`  // if not open: the next start; null: no such time is known
	Why   string    `json:"why,omitempty"`
}

// ApproveRequest is the body of POST /v1/windows/{window}/approve.
type ApproveRequest struct {
	OrderRequest
	For string `json:"for,omitempty"` // the customer's person, if somebody else passes it on
	// Customer names the customer that agrees, if hosts of several customers are at the place of the
	// window.
	Customer  string      `json:"customer,omitempty"`
	Reference string      `json:"reference,omitempty"`
	Hash      string      `json:"hash,omitempty"`  // of the window that was shown; another one is refused
	From      jobs.Time   `json:"from,omitzero"`   // a span: this one and
	Until     jobs.Time   `json:"until,omitzero"`  // this one
	Starts    []jobs.Time `json:"starts,omitzero"` // or single occurrences
	Check     bool        `json:"check,omitempty"` // refuse what is wrong, and approve nothing
}

// Approved is the answer of POST /v1/windows/{window}/approve.
type Approved struct {
	windows.Approval
	Version     int64 `json:"version"`
	Occurrences int   `json:"occurrences"` // number of occurrences that it covers
}

// FreezeRequest is the body of POST /v1/freezes.
type FreezeRequest struct {
	OrderRequest
	Name  string    `json:"name"`
	Level string    `json:"level"`          // everyone, customer, site, group, host
	Of    string    `json:"of,omitempty"`   // the name at that level; empty for everyone
	From  jobs.Time `json:"from,omitzero"`  // now if not set
	Until jobs.Time `json:"until,omitzero"` // until it is lifted if not set
}

// Expected is the state that a caller has seen before it applies files: the answer to a check gives
// it. If another state is in force the request is refused, and nothing is done.
type Expected struct {
	Basis   string `json:"basis,omitempty"`   // of the entries that the files touch
	Version int64  `json:"version,omitempty"` // of the whole timetable
}
