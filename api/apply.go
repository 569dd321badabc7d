package api

import (
	"muster/jobs"
	"muster/windows"
)

// ApplyRequest is the body of POST /v1/apply: files of entries, in the form of package manifest.
type ApplyRequest struct {
	OrderRequest
	ID       string         `json:"id,omitempty"` // of this apply: the same again is the same apply
	Files    []windows.File `json:"files"`
	Attached []windows.File `json:"attached,omitempty"` // files that the entries name in "ics"
	Origin   string         `json:"origin,omitempty"`   // the place from which the entries come
	TakeFrom string         `json:"take_from,omitempty"`
	Prune    bool           `json:"prune,omitempty"` // remove those of the origin that no file names
	Empty    bool           `json:"empty,omitempty"` // also if the files have no entry at all
	Check    bool           `json:"check,omitempty"` // only report what would be done

	IfVersion int64 `json:"if_version,omitempty"` // only if this one is in force; 0: any
}

// AppliedEntry is the effect of an apply on one entry, or the effect that it would have.
type AppliedEntry struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`
	Customer string `json:"customer,omitempty"` // to whom it belongs

	// Change is added, changed, unchanged, removed, or kept: an entry of the same origin that no
	// file names, and that stays in force.
	Change      string   `json:"change"`
	Differences []string `json:"differences"` // key: old → new
	Moved       bool     `json:"moved"`       // the origin is another one than before
}

// Applied is the result of an apply.
type Applied struct {
	ID      string         `json:"id,omitempty"`
	Version int64          `json:"version"` // number of the last apply that changed something
	Check   bool           `json:"check"`
	Already bool           `json:"already"` // nothing differs
	Origin  string         `json:"origin,omitempty"`
	Entries []AppliedEntry `json:"entries"` // at most 1,000 in a result that is kept
	Counts  map[string]int `json:"counts"`  // by change
	Void    []string       `json:"void"`    // approvals that held before
	Notes   []string       `json:"notes"`   // what may surprise the author

	By     string    `json:"by"`
	Proven bool      `json:"proven"` // a token or the kernel has proved the name
	At     jobs.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
	Doubt  string    `json:"doubt,omitempty"` // why the result is not believed
}

// AppliedList is the answer of GET /v1/applies, the newest first.
type AppliedList struct {
	Applies []Applied `json:"applies"`
}

// EntryText is an entry in force as a document of muster apply.
type EntryText struct {
	Kind     string        `json:"kind"`
	Name     string        `json:"name"`
	Customer string        `json:"customer,omitempty"`
	Origin   string        `json:"origin,omitempty"`
	Document string        `json:"document"`
	Attached *windows.File `json:"attached,omitempty"` // its iCalendar file
}

// EntryTexts is the answer of GET /v1/entries.
type EntryTexts struct {
	Version int64       `json:"version"` // number of the last apply
	Entries []EntryText `json:"entries"`
	Notes   []string    `json:"notes"` // what is in force and no entry
}
