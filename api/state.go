package api

import (
	"fmt"
	"math"

	"muster/jobs"
)

// AgreedReport is the answer of GET /v1/agreed: the agreements that history has stored, and whether
// Redis has lost them.
type AgreedReport struct {
	Lost  jobs.AgreedLost `json:"lost"`
	Parts []AgreedCopy    `json:"parts"`
}

// AgreedCopy is one part of the agreements.
type AgreedCopy struct {
	Part  string    `json:"part"`
	Kept  string    `json:"kept"` // the part as history has it
	At    jobs.Time `json:"at"`   // since when
	Now   string    `json:"now"`  // the part as Redis has it; empty: nothing
	Comes bool      `json:"comes_back"`
}

// NodeList is the answer of GET /v1/nodes.
type NodeList struct {
	Nodes  []jobs.Node `json:"nodes"`
	Duties []jobs.Duty `json:"duties"` // the duties, each with its server
}

// UpgradeState is the answer of GET /v1/upgrade: the servers with their versions, and the forms of
// data that they share.
type UpgradeState struct {
	Version string     `json:"version"` // of the server that answers
	Servers []Serving  `json:"servers"`
	Forms   []DataForm `json:"forms"`
}

// Serving is a server that has reported itself.
type Serving struct {
	Server  string    `json:"server"`
	Version string    `json:"version"` // empty: its record cannot be read
	Seen    jobs.Time `json:"seen"`
	Gone    bool      `json:"gone"` // it has not reported for 15 s
}

// DataForm is the form of the data in one place: the hub, a zone, the tables of history.
type DataForm struct {
	Where string `json:"where"`
	Has   string `json:"has"`             // who knows less must not write there; empty: nobody wrote
	By    string `json:"by,omitempty"`    // the version of muster that said so
	Knows string `json:"knows"`           // the latest form that the server knows
	Wrong string `json:"wrong,omitempty"` // why this version writes nothing there
}

// NodeOrdered is the answer to POST /v1/nodes/{node}/pause and resume. The node takes the order a
// little later.
type NodeOrdered struct {
	Node    string `json:"node"`
	Paused  bool   `json:"paused"`
	Note    string `json:"note"`    // by whom, and why
	Already bool   `json:"already"` // it was paused before: that order stays
	Lives   bool   `json:"lives"`   // the node beats
}

// Zone describes the queue of a zone.
type Zone struct {
	Zone    string    `json:"zone"`
	Queued  int64     `json:"queued"`
	Again   int64     `json:"again"`
	Due     int64     `json:"due"`
	Oldest  jobs.Time `json:"oldest"`
	Overdue float64   `json:"overdue"` // seconds
	Frozen  jobs.Time `json:"frozen"`
	Why     string    `json:"why,omitempty"`
	Owes    bool      `json:"asks_history,omitempty" doc:"frozen until history was asked what has ended"`
	Halted  string    `json:"halted,omitempty"`
	Paused  string    `json:"paused,omitempty"`
	NoNode  string    `json:"no_node,omitempty" doc:"that no node works there, and since when"`
	Trouble string    `json:"trouble,omitempty" doc:"why the zone cannot be read; then its numbers are not known"`
	jobs.Sharing
	Deferred jobs.Deferrals `json:"deferred" doc:"jobs that wait for a time of their own"`
}

// QueueInfo is the answer of GET /v1/queue.
type QueueInfo struct {
	Zones []Zone `json:"zones"`
}

// DepthList is the answer of GET /v1/queue/depth: how many jobs waited, as one server saw it since
// it started. Samples of the last hour are single looks; an older one has the largest numbers of
// five minutes. Where samples are further apart the server could not look.
type DepthList struct {
	Since jobs.Time   `json:"since"` // of the first look of this server; null: there was none
	Every float64     `json:"every"` // seconds between two looks
	Zones []ZoneDepth `json:"zones"`
}

// ZoneDepth has the samples of a zone, the oldest first.
type ZoneDepth struct {
	Zone    string        `json:"zone"`
	Samples []DepthSample `json:"samples"`
}

// DepthSample counts the jobs that waited in a zone at a time, as Zone does.
type DepthSample struct {
	At     jobs.Time `json:"at"`
	Queued int64     `json:"queued"`
	Again  int64     `json:"again"`
	Due    int64     `json:"due"`
}

// Health is the answer of GET /v1/health: 200 if the server can work, else 503. With a full Redis
// the answer is 200 and says so: all servers have the same Redis, and a load balancer must not take
// them all away from people, who can still look and cancel.
type Health struct {
	Status    string `json:"status"` // ok, or the problem
	Version   string `json:"version"`
	Redis     string `json:"redis"`             // ok, or the error
	Full      bool   `json:"full,omitempty"`    // Redis accepts no new tasks, but results and cancels
	Doubt     bool   `json:"doubt,omitempty"`   // a server or node does not know the agreed times
	Stopped   bool   `json:"stopped,omitempty"` // nothing starts: see Status
	Inventory string `json:"inventory"`         // version in force
	Hosts     int    `json:"hosts"`
	// Quarantined is the number of hosts that take no job but checks.
	Quarantined int `json:"quarantined,omitempty"`
}

// Unstored counts the entries of an event stream that are not stored yet.
type Unstored struct {
	Zone    string  `json:"zone"`
	Entries int64   `json:"entries"`
	Most    int64   `json:"most"`    // about so many the stream holds
	Share   float64 `json:"share"`   // Entries as a share of Most; from 1 on events are lost
	AtMost  bool    `json:"at_most"` // the number of stored events is not known: there may be fewer
}

// AwayHistory says that history is not being written, and how much longer that may last.
type AwayHistory struct {
	Since   jobs.Time  `json:"since"`
	Note    string     `json:"note"`
	Streams []Unstored `json:"streams"`
}

// Words returns that in a line, with the fullest stream.
func (a AwayHistory) Words() string {
	text := fmt.Sprintf("history is not written since %s: %s", a.Since, a.Note)
	var worst Unstored
	for _, u := range a.Streams {
		if u.Share >= worst.Share {
			worst = u
		}
	}
	if worst.Most == 0 {
		return text
	}
	atMost := ""
	if worst.AtMost {
		atMost = "at most "
	}
	text += fmt.Sprintf("; %s%g %% of what Redis holds of the events of zone %s is used (%d of about "+
		"%d entries)", atMost, math.Round(1000*worst.Share)/10, worst.Zone, worst.Entries, worst.Most)
	if worst.Share >= 1 {
		return text + ": events are being lost"
	}
	return text + ", and what is more will be lost"
}
