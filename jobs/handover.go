package jobs

import (
	"encoding/json"
	"math"
	"strings"
	"time"
)

// Handover is the first message of a master to a child that it has started: a name and first jobs.
type Handover struct {
	Node   string          `json:"node"`
	Slot   string          `json:"slot"` // slot of the child on the node
	Zone   string          `json:"zone"`
	Sent   time.Duration   `json:"sent"` // CLOCK_BOOTTIME before the take was first sent
	Reply  Reply           `json:"reply"`
	Config json.RawMessage `json:"config"` // with secrets, so not in argv or environment
}

// Order is a later message of a master to a child.
type Order string

// OrderDrain orders a child to take nothing new and to exit after the jobs in hand, OrderLook an
// idle child to ask the queue for jobs.
const OrderDrain, OrderLook Order = "drain", "look"

// Report is a message of a child to its master, sent after changes, at most ten times a second.
type Report struct {
	Ready    bool          `json:"ready,omitempty"`  // the first report: the child is up
	Jobs     []ID          `json:"jobs"`             // jobs in hand now
	Deadline time.Duration `json:"deadline"`         // CLOCK_BOOTTIME at which Jobs are over; 0: none
	Done     int           `json:"done"`             // jobs that ended since the child started
	Bye      bool          `json:"bye,omitempty"`    // the last one: the child exits, without jobs
	Idle     bool          `json:"idle,omitempty"`   // it waits for OrderLook, without jobs
	Looked   int           `json:"looked,omitempty"` // the number of OrderLook that it has obeyed
	Next     Micros        `json:"next"`             // with Bye or Idle: next job due; 0: not known
	Now      Micros        `json:"now,omitempty"`    // with Idle: Redis' time of the answer that said Next
	Asked    time.Duration `json:"asked,omitempty"`  // CLOCK_BOOTTIME before the call was sent that said Next
	Away     bool          `json:"away,omitempty"`   // the queue does not answer it
	Error    string        `json:"error,omitempty"`  // with Bye: why it gives up
	Doubt    string        `json:"doubt,omitempty"`  // why it could not learn the windows and freezes
}

// Loss tells the queue that a child is gone.
type Loss struct {
	Node, Slot string
	Why        string // "killed by signal 9", "out of memory", "vanished while no master ran"
}

// The states of a node that takes no jobs.
const (
	NodeGone     = "gone"     // silent for 15 s
	NodeDraining = "draining" // it ends the jobs in hand, and takes no more
	NodeStopping = "stopping" // about to exit
)

// Node is the record that a master sends with every beat.
type Node struct {
	ID       string   `json:"id"`
	PID      int      `json:"pid"`
	State    string   `json:"state"` // running, draining, stopping
	Zones    []string `json:"zones"`
	Children []Child  `json:"children"`
	Limit    int      `json:"limit"` // most children at a time
	Slots    int      `json:"slots"` // jobs that a child works on at a time
	Version  string   `json:"version"`
	Started  Time     `json:"started"`
	Seen     Time     `json:"seen"`
	Note     string   `json:"note,omitempty"` // a message for the operator, such as a refused reload
	Spawned  int      `json:"spawned"`        // children started since the master started
	Identity string   `json:"identity"`       // identifies its machine and node.dir
	Clock    Clock    `json:"clock"`
	Unusual
}

// Unusual says why a node takes less work than it could, or more.
type Unusual struct {
	// Doubt says why its workers begin no job: the node cannot read whom it trusts, or a worker has
	// reported in the last minute that it does not know windows and freezes. Empty: neither.
	Doubt string `json:"doubt,omitempty"`

	Governor *Governor `json:"governor,omitempty"` // not set: nothing limits the node
	Paused   *Pause    `json:"paused,omitempty"`   // by whom; not set: it is not
	Standby  []string  `json:"standby,omitempty"`  // those of Zones for which it only stands in
}

// Most returns how many children the node may have now.
func (n Node) Most() int {
	switch {
	case n.Paused != nil || n.Governor != nil && n.Governor.Starved:
		return 0
	case n.Governor != nil:
		return min(n.Limit, n.Governor.Children)
	}
	return n.Limit
}

// AddNote adds a message for the operator.
func (n *Node) AddNote(text string) { n.Note = strings.TrimPrefix(n.Note+"; "+text, "; ") }

// Governor says how much work the machine of a node can bear.
type Governor struct {
	Starved  bool     `json:"starved"`  // the node takes nothing
	Children int      `json:"children"` // at a time, at most
	Why      []string `json:"why"`      // it is so few
	Kinds    []string `json:"kinds"`    // of what there is too little: memory, disk …
}

// Pause is the order that a node takes nothing.
type Pause struct {
	Note string `json:"note"` // by whom, and why
	At   Time   `json:"at"`
}

// Clock describes the clock of a node.
type Clock struct {
	Skew  float64 `json:"skew_seconds"`       // the node's clock minus that of Redis, as far as known
	Loose string  `json:"not_kept,omitempty"` // why NTP may not keep it right; empty: NTP does
	Zones string  `json:"zones,omitempty"`    // version of the node's time zone database
}

// SkewMax bounds the difference between the clocks of a node and of Redis. Beyond it the node
// begins no job that needs a window.
const SkewMax = 2 * time.Second

// Wrong reports whether the node begins no job that needs a window.
func (c Clock) Wrong() bool { return math.Abs(c.Skew) > SkewMax.Seconds() }

// Child is one worker process of a node.
type Child struct {
	PID     int    `json:"pid"`
	Job     ID     `json:"job"`               // the first job in hand; empty: none
	Jobs    []ID   `json:"jobs,omitempty"`    // all in hand, if more than one
	Orphan  bool   `json:"orphan,omitempty"`  // started by an earlier master
	Version string `json:"version,omitempty"` // unknown: an earlier muster started it
}
