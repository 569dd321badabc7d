package jobs

import (
	"encoding/json"
	"math"
	"time"
)

// Handover is the first message of a master to a child that it has started:
// who the child is, and the jobs that were taken for it.
type Handover struct {
	Node   string          `json:"node"`
	Slot   string          `json:"slot"` // child slot on the node
	Zone   string          `json:"zone"`
	Sent   time.Duration   `json:"sent"` // CLOCK_BOOTTIME before the take was first sent
	Reply  Reply           `json:"reply"`
	Config json.RawMessage `json:"config"` // the configuration; secrets are not in argv or environment
}

// Order is what a master says to a child later.
type Order string

// OrderDrain tells a child to take nothing new and to exit after the jobs in hand.
const OrderDrain Order = "drain"

// Report is what a child says to its master when it changes, ten times a second at most.
type Report struct {
	Ready    bool          `json:"ready,omitempty"` // the first one: the child is up
	Jobs     []ID          `json:"jobs"`            // in hand now
	Deadline time.Duration `json:"deadline"`        // CLOCK_BOOTTIME by which all of Jobs are over; 0: none
	Done     int           `json:"done"`            // jobs ended since the child started
	Bye      bool          `json:"bye,omitempty"`   // the last one: exits now, with nothing in hand
	Next     Micros        `json:"next"`            // with Bye: when there is work again; 0: not known
	Error    string        `json:"error,omitempty"` // with Bye: why it gives up
	Doubt    string        `json:"doubt,omitempty"` // why it was not told what is agreed about times
}

// Loss tells the queue that a child is gone.
type Loss struct {
	Node string
	Slot string
	Why  string // "killed by signal 9", "out of memory", "exit 2", "vanished while no master ran"
}

// The states of a node that takes no jobs.
const (
	NodeGone     = "gone"     // it was not heard of for 15 s
	NodeDraining = "draining" // it ends what it has in hand
	NodeStopping = "stopping" // it is about to be gone
)

// Node is what a master tells about itself with every beat.
type Node struct {
	ID       string   `json:"id"`
	PID      int      `json:"pid"`
	State    string   `json:"state"` // running, draining, stopping
	Zones    []string `json:"zones"`
	Children []Child  `json:"children"`
	Limit    int      `json:"limit"` // children at most
	Slots    int      `json:"slots"` // jobs a child works on at a time
	Version  string   `json:"version"`
	Started  Time     `json:"started"`
	Seen     Time     `json:"seen"`
	Note     string   `json:"note,omitempty"` // what an operator should know, such as a refused reload
	Spawned  int      `json:"spawned"`        // children started since the master started
	Identity string   `json:"identity"`       // of its machine and node.dir
	Clock    Clock    `json:"clock"`

	// Doubt is why its workers do not know what is agreed about times, as one of them said in
	// the last minute: they begin nothing. Empty: none said so.
	Doubt string `json:"doubt,omitempty"`
}

// Clock is what a node knows of its clock.
type Clock struct {
	Skew  float64 `json:"skew_seconds"`       // it is so far ahead of that of Redis, as near as is known
	Loose string  `json:"not_kept,omitempty"` // why it is not known to be kept right by NTP; empty: it is
	Zones string  `json:"zones,omitempty"`    // the version of the time zone database it goes by
}

// SkewMax is how far the clock of a node may be from that of Redis, if it is to begin what
// needs a window.
const SkewMax = 2 * time.Second

// Wrong tells whether the node begins nothing that needs a window.
func (c Clock) Wrong() bool { return math.Abs(c.Skew) > SkewMax.Seconds() }

// Child is one worker process of a node.
type Child struct {
	PID    int  `json:"pid"`
	Job    ID   `json:"job"`              // the first one in hand; empty: none
	Jobs   []ID `json:"jobs,omitempty"`   // all in hand, if more than one
	Orphan bool `json:"orphan,omitempty"` // started by an earlier master
}
