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
	Commit  string         `json:"commit,omitempty"` // of the repository that the origin names
	Entries []AppliedEntry `json:"entries"`          // at most 1,000 in a result that is kept
	Counts  map[string]int `json:"counts"`           // by change
	Void    []string       `json:"void"`             // approvals that held before
	Notes   []string       `json:"notes"`            // what may surprise the author

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

// Repository is a branch whose files a server puts in force by itself.
type Repository struct {
	Name      string   `json:"name"`
	URL       string   `json:"url"`
	Branch    string   `json:"branch"`
	Path      string   `json:"path,omitempty"` // folder with the files
	Origin    string   `json:"origin"`         // of its entries
	Customers []string `json:"customers"`      // whose entries it may change; empty: those of all
	Kinds     []string `json:"kinds"`
	Signed    bool     `json:"signed"` // its commits must be signed
	Source    string   `json:"event_source,omitempty"`

	State RepositoryState `json:"state"`
}

// RepositoryState says what of a repository is in force, and how the last look at it went.
type RepositoryState struct {
	Commit  string    `json:"commit,omitempty"` // in force
	Subject string    `json:"subject,omitempty"`
	Signer  string    `json:"signer,omitempty"`
	Version int64     `json:"version,omitempty"` // of the apply that put it in force
	Since   jobs.Time `json:"since"`
	Seen    string    `json:"seen,omitempty"` // the newest commit that is known
	Looked  jobs.Time `json:"looked"`
	Heard   int64     `json:"heard"` // number of the last order to look that was carried out
	Error   string    `json:"error,omitempty"`
	Refused bool      `json:"refused"` // what is in the repository is wrong; else it could not be read
	Adrift  int       `json:"adrift"`  // entries that differed from the commit in force; -1: not known
	Doubt   string    `json:"doubt,omitempty"`
}

// Repositories is the answer of GET /v1/repositories.
type Repositories struct {
	Repositories []Repository `json:"repositories"`
	Complaint    string       `json:"complaint,omitempty"` // why a changed file is not in force
}

// RepositoryPoll is the body of POST /v1/repositories/{repository}/poll.
type RepositoryPoll struct {
	OrderRequest
	// Accept is a commit that may come into force although it does not descend from the one in force.
	Accept string `json:"accept,omitempty"`
}

// RepositoryAsked is its answer: the look is done when Heard of the repository is this number.
type RepositoryAsked struct {
	Asked int64 `json:"asked"`
}
