package api

import (
	"fmt"
	"math"

	"muster/jobs"
)

// AgreedReport is the answer of GET /v1/agreed: what history keeps of what was agreed, and
// whether Redis has lost it.
type AgreedReport struct {
	Lost  jobs.AgreedLost `json:"lost"`
	Parts []AgreedCopy    `json:"parts"`
}

// AgreedCopy is one part of it.
type AgreedCopy struct {
	Part  string    `json:"part"`
	Kept  string    `json:"kept"` // what history has of it
	At    jobs.Time `json:"at"`   // since when it is so
	Now   string    `json:"now"`  // what Redis has of it; empty: nothing
	Comes bool      `json:"comes_back"`
}

// NodeList is the answer of GET /v1/nodes.
type NodeList struct {
	Nodes  []jobs.Node `json:"nodes"`
	Duties []jobs.Duty `json:"duties"` // which server has which
}

// Zone is what waits in a zone.
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

// Health is the answer of GET /v1/health: 200 if the server can work, else 503. One whose
// Redis is full says 200 and how it is: a load balancer shall not take that from people,
// who can look and cancel, as all servers have the same Redis.
type Health struct {
	Status    string `json:"status"` // ok, or what is wrong
	Version   string `json:"version"`
	Redis     string `json:"redis"`             // ok, or the error
	Full      bool   `json:"full,omitempty"`    // Redis takes nothing new, but results and cancels
	Doubt     bool   `json:"doubt,omitempty"`   // what is agreed about times is not known somewhere
	Stopped   bool   `json:"stopped,omitempty"` // nothing starts: see Status
	Inventory string `json:"inventory"`         // version in force
	Hosts     int    `json:"hosts"`
}

// Unstored is how much of what an event stream holds is not stored.
type Unstored struct {
	Zone    string  `json:"zone"`
	Entries int64   `json:"entries"`
	Most    int64   `json:"most"`    // about so many it holds
	Share   float64 `json:"share"`   // of that; from 1 on events are lost
	AtMost  bool    `json:"at_most"` // it is not known how many were stored: there may be less
}

// AwayHistory says that history is not written at the moment, and how much that may go on.
type AwayHistory struct {
	Since   jobs.Time  `json:"since"`
	Note    string     `json:"note"`
	Streams []Unstored `json:"streams"`
}

// Words say it in a line, with the stream of which the most is used.
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
