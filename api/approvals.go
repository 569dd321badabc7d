package api

import (
	"encoding/json"

	"muster/jobs"
)

// HeaderOrder is the header with the hash of the signed order in the answer to a new submit.
const HeaderOrder = "Muster-Order"

// HeldTask describes a task that waits for signatures of people.
type HeldTask struct {
	Task     jobs.TaskID `json:"task"`
	Runbook  string      `json:"runbook"`
	Operator string      `json:"operator"`
	Reason   string      `json:"reason,omitempty"`
	Hosts    int         `json:"hosts"` // how many
	Hash     string      `json:"hash"`  // of the order: what people sign
	Since    jobs.Time   `json:"since"`
	Until    jobs.Time   `json:"until"` // when it expires
	// Signed has a name of each person whose signature counts. It is empty on a server that has no
	// folder trust.
	Signed []string `json:"signed"`
}

// HeldList is the answer of GET /v1/approvals, the newest first.
type HeldList struct {
	Approvals []HeldTask `json:"approvals"`
}

// HeldDetail is the answer of GET /v1/approvals/{task}.
type HeldDetail struct {
	HeldTask
	On string `json:"on"`
	// BreakGlass says why its operator runs it alone; empty: that is not so.
	BreakGlass string         `json:"break_glass,omitempty"`
	Ran        *jobs.Ran      `json:"ran"` // the runbook and its arguments; secrets are sealed
	NotBefore  jobs.Time      `json:"not_before"`
	NotAfter   jobs.Time      `json:"not_after"`
	Zones      []HeldZone     `json:"zones"`
	Customers  []HeldCustomer `json:"customers"`      // the hosts, by customer
	Order      []byte         `json:"order"`          // its bytes, in base64
	Last       *HeldLast      `json:"last,omitempty"` // the last run of its runbook; nil: none is known
	// Missing is the number of people who must still sign; null on a server that has no folder trust.
	Missing *int `json:"missing"`
}

// HeldLast is the last run of a runbook before a held task.
type HeldLast struct {
	Task jobs.TaskID     `json:"task"`
	At   jobs.Time       `json:"at"`             // when it was submitted
	Hash string          `json:"hash"`           // of the text of the runbook then
	Plan json.RawMessage `json:"plan,omitempty"` // its frozen steps; empty: nobody keeps them any more
}

// HeldZone is the part of a held task in a zone.
type HeldZone struct {
	Zone  string `json:"zone"`
	Hosts int    `json:"hosts"`
	// Shares have the names of the hosts and the hashes of their records; the order has the hash of
	// each share.
	Shares []string `json:"shares"`
}

// HeldCustomer has the hosts of one customer; the name is empty for those of none.
type HeldCustomer struct {
	Customer string `json:"customer"`
	Count    int    `json:"count"`
	Hosts    string `json:"hosts"` // folded
}

// EndorseRequest is the body of POST /v1/approvals/{task}. It has a signature, or the proof that a
// passkey made.
type EndorseRequest struct {
	Hash      string        `json:"hash"`                // of the order that was signed
	Signature string        `json:"signature,omitempty"` // as `ssh-keygen -Y sign -n muster-order` makes it
	Passkey   *PasskeyProof `json:"passkey,omitempty"`
	As        string        `json:"as,omitempty"`
}

// PasskeyProof is the answer of a browser that was asked to sign an order with a passkey (Web
// Authentication Level 2, §5.2.2). Its challenge is what `ssh-keygen -Y sign -n muster-order` would
// sign.
type PasskeyProof struct {
	Client        []byte `json:"client"`        // clientDataJSON
	Authenticator []byte `json:"authenticator"` // authenticatorData
	Signature     []byte `json:"signature"`     // in ASN.1
}

// Withdrawn is the answer of DELETE /v1/approvals/{task}/signature.
type Withdrawn struct {
	Task    jobs.TaskID `json:"task"`
	Whole   bool        `json:"whole"`   // the one who ordered the task took all of it back: it never runs
	Ended   int         `json:"ended"`   // its jobs
	Signed  []string    `json:"signed"`  // who has signed and counts
	Missing *int        `json:"missing"` // people who must still sign; null: nobody can say
}

// Endorsed is the answer of POST /v1/approvals/{task}.
type Endorsed struct {
	Task      jobs.TaskID `json:"task"`
	Hash      string      `json:"hash"`
	Signed    []string    `json:"signed"`
	Missing   int         `json:"missing"`   // people who must still sign
	Committed bool        `json:"committed"` // the task runs
}
