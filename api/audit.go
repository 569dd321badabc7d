package api

import (
	"muster/audit"
	"muster/jobs"
)

// AuditEntry is an entry of the audit log, with what is kept beside it.
type AuditEntry struct {
	Seq    int64       `json:"seq"`
	ID     string      `json:"id"`
	At     jobs.Time   `json:"at"`
	Kind   string      `json:"kind"`            // order, outcome, refused, note
	Who    string      `json:"who"`             // a principal; its reference if the name was erased
	Erased bool        `json:"erased"`          // the name was
	Proof  string      `json:"proof,omitempty"` // how the caller proved who it is
	Verb   string      `json:"verb"`
	Object string      `json:"object,omitempty"`
	Task   *audit.Task `json:"task,omitempty"`
	Said   AuditSaid   `json:"said"`
	Ended  *AuditEnded `json:"ended"` // null: it is not known how it ended, or it is a note
	Server string      `json:"server,omitempty"`
	Late   string      `json:"late,omitempty"`  // spool or memory: it came into the tree later
	Times  int64       `json:"times,omitempty"` // of so many that are alike; 0: one
}

// AuditSaid has the parts of an entry that can be erased.
type AuditSaid struct {
	From   string `json:"from,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// AuditEnded says how a request ended.
type AuditEnded struct {
	Result string `json:"result"`           // done, refused, failed
	Status int    `json:"status,omitempty"` // of HTTP
}

// AuditPage is the answer of GET /v1/audit, the newest entry first.
type AuditPage struct {
	Entries []AuditEntry `json:"entries"`
	Next    int64        `json:"next,omitempty"` // the next page has those before this entry; 0: none
}

// AuditDetail is the answer of GET /v1/audit/entries/{seq}.
type AuditDetail struct {
	AuditEntry
	Record audit.Record `json:"record"` // as the tables keep it
}

// AuditState is the answer of GET /v1/audit/state.
type AuditState struct {
	Entries    int64       `json:"entries"`
	Signed     int64       `json:"signed"`     // entries that a checkpoint has
	Checkpoint string      `json:"checkpoint"` // the newest, signed; empty: there is none
	Keys       []string    `json:"keys"`       // public keys of the server that answers
	Trouble    string      `json:"trouble"`    // of this server; empty: none
	Spooled    int         `json:"spooled"`    // entries of this server that are not in the tables yet
	Sinks      []AuditSink `json:"sinks"`
}

// AuditSink says how far a sink has the log.
type AuditSink struct {
	Sink        string    `json:"sink"`
	Entries     int64     `json:"entries"`     // the next one that it gets; 0 if it gets none
	Checkpoints int64     `json:"checkpoints"` // size of the last one that it has
	At          jobs.Time `json:"at"`          // when it took something last
	Since       jobs.Time `json:"since"`       // when its trouble began; null: it has none
	Trouble     string    `json:"trouble,omitempty"`
}

// AuditErase is the body of POST /v1/audit/erase: a name, or an entry.
type AuditErase struct {
	OrderRequest
	Name  string `json:"name,omitempty"`
	Entry *int64 `json:"entry,omitempty"`
}

// AuditErased is its answer.
type AuditErased struct {
	Object string `json:"object"` // person/REFERENCE or entry/NUMBER
}
