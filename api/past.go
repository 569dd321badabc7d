package api

import (
	"strings"

	"muster/jobs"
)

// PastJob is a job that has ended. Unknown fields are empty.
type PastJob struct {
	jobs.JobInfo
	Zone     string `json:"zone"`
	Customer string `json:"customer"`
	Model    string `json:"model"`
	Runbook  string `json:"runbook"`
	Operator string `json:"operator"`
	Proof    Proof  `json:"proof,omitempty"` // empty: nobody has judged it
	// Asked is the request that made its task; nil: unknown, or given elsewhere in the answer.
	Asked *Asked `json:"asked,omitempty"`
}

// A Proof is the kind of evidence for the end of a job.
type Proof string

// The proofs. They are empty for ends from before this version, and where the server has no folder
// trust, or a policy that is off.
const (
	ByNode    Proof = "node"  // a MAC of a node says how the job ended
	ByQueue   Proof = "queue" // the queue ended it by itself, such as by a cancel: no node said so
	NotProven Proof = "none"  // a node should have said so, and its MAC is missing or wrong
)

// notProvenWords stand beside an end that is not proven.
const notProvenWords = "not proven: no node has vouched for this end"

// WithoutProof returns the note of a job, with the words that its end is not proven in front.
func WithoutProof(note string) string {
	if note == "" || IsWithoutProof(note) {
		return notProvenWords
	}
	return notProvenWords + "; " + note
}

// IsWithoutProof reports whether a note says that the end of its job is not proven.
func IsWithoutProof(note string) bool { return strings.HasPrefix(note, notProvenWords) }

// Gap is a part of a stream that vanished before it was read.
type Gap struct {
	Zone    string    `json:"zone"`
	After   string    `json:"after"`   // the last entry that was read before it
	First   string    `json:"first"`   // the first entry that was still there; empty: none
	Entries int64     `json:"entries"` // number of missing entries; -1: not known
	At      jobs.Time `json:"at"`      // when it was noticed
	Note    string    `json:"note"`

	Back bool `json:"-"` // Redis has forgotten what history knows
}

// Attempt is one try at a job.
type Attempt struct {
	Attempt int       `json:"attempt"`
	Node    string    `json:"node"`
	Started jobs.Time `json:"started"`
	Ended   jobs.Time `json:"ended"`
	How     string    `json:"how"` // an outcome, or retry, wait, verify, defer, back, lost
}

// StepBegun is a step of a runbook that a job began, after the first.
type StepBegun struct {
	Step int       `json:"step"` // counted from 0
	At   jobs.Time `json:"at"`
}

// Course is the stored course of a job to its end.
type Course struct {
	Attempts []Attempt   `json:"attempts"`
	Steps    []StepBegun `json:"steps"`

	// Doubted says why a node has doubted the order of the task; empty: no event says so.
	Doubted string `json:"doubted,omitempty"`
}

// PageMax bounds the jobs of one page.
const PageMax = 500

// Position is the place up to which the stream of a zone was read. Last is empty at its beginning.
type Position struct {
	Zone    string    `json:"zone"`
	Last    string    `json:"last"`
	Entries int64     `json:"entries"` // counted by Redis; -1: not known
	Events  int64     `json:"events"`  // number of stored events
	At      jobs.Time `json:"at"`      // time of the last reading
}

// Asked is the request that made the task of a job. Ran is nil if it was not kept.
type Asked struct {
	On     string    `json:"on"`
	Proven bool      `json:"proven"`
	Reason string    `json:"reason,omitempty"`
	Ran    *jobs.Ran `json:"ran,omitempty"`
}

// Spent is the time that the jobs of a task spent on one use, in seconds.
type Spent struct {
	Use  jobs.Use `json:"use"`
	Jobs int      `json:"jobs"` // number of jobs that spent any; the other fields count only these
	Sum  float64  `json:"sum"`
	P50  float64  `json:"p50"`
	P90  float64  `json:"p90"`
	Max  float64  `json:"max"`
}

// PastEvents is one page of the answer of GET /v1/history/events, the first event first.
type PastEvents struct {
	Events []PastEvent `json:"events"`
	Next   string      `json:"next,omitempty"` // cursor of the next page; empty: this was the last

	// Unsaid means, in an answer about one operator, that an older muster stored some events of that
	// time without their operators. The answer lacks those.
	Unsaid bool `json:"unsaid,omitempty"`
}

// A PastEvent is an event that history keeps, with its operator, if somebody ordered it.
type PastEvent struct {
	jobs.Happening
	Who string `json:"who,omitempty"`
}

// PastJobs is one page of the answer of GET /v1/history, the last job first.
type PastJobs struct {
	Jobs []PastJob `json:"jobs"`
	Next string    `json:"next,omitempty"` // cursor of the next page; empty: this was the last
}

// HistoryState is the answer of GET /v1/history/state.
type HistoryState struct {
	Where   string     `json:"where"`
	Streams []Position `json:"streams"` // position in each stream
	Gaps    []Gap      `json:"gaps"`    // entries that vanished before they were read, the last first
}

// DNSSECList is the answer of GET /v1/dnssec: what jobs of the runbooks dnssec and dnssec-status
// said about the keys of DNS zones, a place for each zone on each host that signs it.
type DNSSECList struct {
	Zones []DNSSECZone `json:"zones"`
	Lacks []string     `json:"lacks"` // why the list may lack some
}

// DNSSECZone is a DNS zone on the host that signs it.
type DNSSECZone struct {
	Name   string        `json:"name"`
	Host   string        `json:"host"`
	Status *DNSSECStatus `json:"status,omitempty"` // of the newest dnssec-status; nil: there is none
	Roll   *DNSSECRoll   `json:"roll,omitempty"`   // of the newest dnssec; nil: there is none
}

// DNSSECJob is the job that said it.
type DNSSECJob struct {
	ID       jobs.ID      `json:"job"`
	State    jobs.State   `json:"state"`
	Outcome  jobs.Outcome `json:"outcome,omitempty"` // empty until it ended
	Started  jobs.Time    `json:"started"`
	Finished jobs.Time    `json:"finished"`
	Said     string       `json:"said,omitempty"` // its last word: what is wrong, or what it waits for
}

// DNSSECStatus describes the keys of a zone, as of the time of a job.
type DNSSECStatus struct {
	DNSSECJob
	Keys    []DNSSECKey `json:"keys"`
	DS      []string    `json:"ds"`      // of the parent
	Servers []string    `json:"servers"` // what each server has
	Policy  []string    `json:"policy"`  // the times that a roll of each kind of key takes
}

// DNSSECKey is a key of a zone.
type DNSSECKey struct {
	Tag       int    `json:"tag"`
	Role      string `json:"role"` // ZSK, KSK or CSK
	Algorithm string `json:"algorithm"`
	Phase     string `json:"phase"` // new, ready, active, old or gone
}

// DNSSECRoll is the rollover of a key.
type DNSSECRoll struct {
	DNSSECJob
	Kind     string         `json:"kind"`          // zsk or ksk
	Old      string         `json:"old,omitempty"` // tag of the key that is replaced
	New      string         `json:"new,omitempty"` // tag of the new key
	DS       string         `json:"ds,omitempty"`  // what the parent must have
	Step     string         `json:"step,omitempty"`
	Next     jobs.Time      `json:"next"` // when the job looks again; not set: nothing is due
	Timeline []DNSSECMoment `json:"timeline"`
}

// DNSSECMoment is a moment of a rollover as the policy of the zone gives it.
type DNSSECMoment struct {
	At    jobs.Time `json:"at"` // not set: it is not known yet
	After string    `json:"after,omitempty"`
	What  string    `json:"what"`
}
