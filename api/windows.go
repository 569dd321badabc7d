package api

import (
	"muster/jobs"
	"muster/windows"
)

// WindowsRequest is the body of PUT /v1/windows: files that say when work may be done. What they
// name is added, or takes the place of what has its name; the rest stays, unless it is pruned.
type WindowsRequest struct {
	OrderRequest
	windows.Pruning
	Expected
	Files    []windows.File `json:"files"`
	Attached []windows.File `json:"attached,omitempty"` // what "ics" names
	Check    bool           `json:"check,omitempty"`    // answer what would change, do nothing
}

// WindowsChanged is the answer to whatever changes the timetable.
type WindowsChanged struct {
	Version int64 `json:"version"` // of the timetable from now on
	Already bool  `json:"already"` // nothing was to be done
	windows.Change
	Notes []string `json:"notes"` // of what was added or changed: what may be a mistake

	// Of files that are applied: what of the same customers these do not name, and stays; and
	// what to expect when they are applied after a check.
	Left  []string `json:"left,omitempty"`
	Basis string   `json:"basis,omitempty"`
}

// WindowInfo describes a window as it is agreed.
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
	Hash     string      `json:"hash"`     // of what an approval is for
	Next     *Occurrence `json:"next"`     // null: it is not open again

}

// WindowSpan is how long a window is open, and valid.
type WindowSpan struct {
	Length string `json:"length,omitempty"` // or
	End    string `json:"end,omitempty"`    // by the clock
	Cutoff string `json:"cutoff"`
	From   string `json:"from,omitempty"`
	Until  string `json:"until,omitempty"`

	Except []string `json:"except,omitempty"` // days on which it is not open
}

// Occurrence is a window once.
type Occurrence struct {
	Window     string    `json:"window"`
	Start      jobs.Time `json:"start"`
	End        jobs.Time `json:"end"`
	Cutoff     jobs.Time `json:"cutoff"`       // nothing is begun from here on
	LocalStart string    `json:"local_start"`  // as the clocks of the window's zone read
	LocalEnd   string    `json:"local_end"`    // the same
	Zone       string    `json:"zone"`         // of the window
	Approved   bool      `json:"approved"`     // or no approval is needed
	Approval   string    `json:"approval"`     // its id; empty: none
	Frozen     string    `json:"frozen_by"`    // a freeze that holds at its start; empty: none
	Seconds    float64   `json:"open_seconds"` // from start to end
}

// FreezeInfo describes a freeze. From and until of one with events are those of the event
// that is on or comes next; both are null if there is none any more.
type FreezeInfo struct {
	Name    string    `json:"name"`
	For     string    `json:"for"`
	Reason  string    `json:"reason"`
	From    jobs.Time `json:"from"`
	Until   jobs.Time `json:"until"`  // null, and not over: until it is lifted
	Ordered string    `json:"by"`     // who ordered it by hand; empty: it is in a file
	Active  bool      `json:"active"` // it holds now
	Over    bool      `json:"over"`   // it does not hold again

}

// WindowList is the answer of GET /v1/windows.
type WindowList struct {
	Version   int64              `json:"version"`
	Windows   []WindowInfo       `json:"windows"`
	Freezes   []FreezeInfo       `json:"freezes"`
	Approvals []windows.Approval `json:"approvals"`
	Void      []string           `json:"void"` // approvals of windows that were changed since
	// Timetable is all of it as it was written, for those who compute with it.
	Timetable windows.Timetable `json:"timetable"`
}

// OccurrenceList is the answer of GET /v1/windows/{window}/next and of
// GET /v1/hosts/{host}/next.
type OccurrenceList struct {
	Occurrences []Occurrence `json:"occurrences"`
}

// HostWindows is the answer of GET /v1/hosts/{host}/windows: which windows hold for
// a host, and why.
type HostWindows struct {
	Host    string       `json:"host"`
	Level   string       `json:"level"` // of the windows that hold
	Windows []WindowInfo `json:"windows"`
	Hidden  []WindowInfo `json:"hidden"` // would hold, were there none of a more special level
	// Others do not hold: they are of other customers, or the host's never approved them.
	Others  []WindowInfo `json:"others"`
	Freezes []FreezeInfo `json:"freezes"`
	Now     HostVerdict  `json:"now"`
}

// HostVerdict says whether work that needs a window may start at a host now.
type HostVerdict struct {
	Open  bool      `json:"open"`
	Until jobs.Time `json:"until"` // the end of the opening; null, and open: not within 400 days
	Next  jobs.Time `json:"next"`  // if it may not: when it may; null: no such time is known
	Why   string    `json:"why,omitempty"`
}

// ApproveRequest is the body of POST /v1/windows/{window}/approve.
type ApproveRequest struct {
	OrderRequest
	For string `json:"for,omitempty"` // the customer's person, if somebody else says it
	// Customer is who agrees, if hosts of several customers are at the place of the window.
	Customer  string      `json:"customer,omitempty"`
	Reference string      `json:"reference,omitempty"`
	Hash      string      `json:"hash,omitempty"`  // of the window that was shown; another is refused
	From      jobs.Time   `json:"from,omitzero"`   // a span: this one and
	Until     jobs.Time   `json:"until,omitzero"`  // this one
	Starts    []jobs.Time `json:"starts,omitzero"` // or single occurrences
}

// Approved is the answer of POST /v1/windows/{window}/approve.
type Approved struct {
	windows.Approval
	Version     int64 `json:"version"`
	Occurrences int   `json:"occurrences"` // that it covers
}

// FreezeRequest is the body of POST /v1/freezes.
type FreezeRequest struct {
	OrderRequest
	Name  string    `json:"name"`
	Level string    `json:"level"`          // everyone, customer, site, group, host
	Of    string    `json:"of,omitempty"`   // whose; empty for everyone
	From  jobs.Time `json:"from,omitzero"`  // now if not set
	Until jobs.Time `json:"until,omitzero"` // until it is lifted if not set
}

// Expected is what whoever applies files has seen: the answer to a check says it. Something else
// in force is refused, and nothing is done.
type Expected struct {
	Basis   string `json:"basis,omitempty"`   // of what the files touch
	Version int64  `json:"version,omitempty"` // of the whole timetable
}
