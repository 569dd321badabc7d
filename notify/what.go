package notify

import (
	"slices"

	"muster/jobs"
)

// A What is a kind of things that happen.
type What string

// The kinds of things of which rules tell.
const (
	Outcome         What = "outcome"          // jobs have ended so
	TaskEnded       What = "task-ended"       // a task, with all its jobs
	RolloutStopped  What = "rollout-stopped"  // a rule of a task has stopped it
	GroupFrozen     What = "group-frozen"     // what a job did to a redundancy group is not known
	HostAside       What = "host-quarantined" // a host takes no job but checks
	ZoneFrozen      What = "zone-frozen"      // a zone starts nothing: Redis has lost something
	ApprovalWanted  What = "approval-wanted"  // a task waits for signatures
	WindowMissed    What = "window-missed"    // jobs have expired that waited for a window
	WindowOverrun   What = "window-overrun"   // a job works on behind the end of its window
	ScheduleFailed  What = "schedule-failed"  // a tick of a schedule has no task
	NodeGone        What = "node-gone"        // a node is not heard of any more
	NodeAside       What = "node-set-aside"   // muster lets a node take nothing: its jobs fail
	ZoneUnserved    What = "zone-unserved"    // no node begins jobs of a zone
	HistoryAway     What = "history-away"     // history could not be written for some time
	NotProven       What = "not-proven"       // no node vouches for what Redis says of a job
	GlassBroken     What = "glass-broken"     // one person ran alone what more must sign
	AgreedLost      What = "agreed-lost"      // Redis has lost what people have agreed
	ApplyFailed     What = "apply-failed"     // the newest commit of a repository is not in force
	DeliveryExpired What = "delivery-expired" // a message of ours reached its receiver in no try
	Test            What = "test"             // somebody tries a receiver; no rule names it
)

// Whats lists the kinds that a rule may name.
func Whats() []What {
	return []What{Outcome, TaskEnded, RolloutStopped, GroupFrozen, HostAside, ZoneFrozen,
		ApprovalWanted, WindowMissed, WindowOverrun, ScheduleFailed, NodeGone, NodeAside,
		ZoneUnserved, HistoryAway, NotProven, GlassBroken, AgreedLost, ApplyFailed, DeliveryExpired}
}

// ofWork are the kinds that concern hosts of a task, and so a runbook; outcomes also have a
// customer.
var ofWork = []What{Outcome, TaskEnded, RolloutStopped, ApprovalWanted, WindowMissed, WindowOverrun,
	NotProven, GlassBroken}

// ofCustomers are the kinds of which the customers are known.
var ofCustomers = []What{Outcome, TaskEnded, WindowMissed}

// clears are the kinds that last until something ends them.
var clears = []What{GroupFrozen, HostAside, ZoneFrozen, NodeGone, NodeAside, ZoneUnserved,
	HistoryAway, AgreedLost, ApplyFailed}

// Clears reports whether a thing of this kind lasts until something ends it.
func (w What) Clears() bool { return slices.Contains(clears, w) }

// A Signal says that something happened.
type Signal struct {
	// Key is the name of this happening: the same one is told once.
	Key  string    `json:"key"`
	At   jobs.Time `json:"at"`
	What What      `json:"what"`

	Of
	Zone   string `json:"zone,omitempty"`
	Object string `json:"object,omitempty"` // name of a group, a node, a schedule, a job
	Note   string `json:"note,omitempty"`
	// Over: what lasted is over now.
	Over bool `json:"over,omitempty"`

	Outcome jobs.Outcome `json:"outcome,omitempty"`
	Hosts   Hosts        `json:"hosts,omitzero"`
	Counts  []Count      `json:"counts,omitempty"` // of a task that has ended
}

// Of says which work a signal concerns.
type Of struct {
	Task     jobs.TaskID `json:"task,omitempty"`
	Runbook  string      `json:"runbook,omitempty"`
	Operator string      `json:"operator,omitempty"`
	Schedule string      `json:"schedule,omitempty"`
	On       string      `json:"on,omitempty"` // the selector
	Customer string      `json:"customer,omitempty"`
}

// Count has the hosts of one customer on which jobs of a task ended in one way.
type Count struct {
	Customer string       `json:"customer"`
	Outcome  jobs.Outcome `json:"outcome"`
	Hosts    Hosts        `json:"hosts"`
}

// Hosts are some hosts: their number, and the names of the first of them.
type Hosts struct {
	Count int      `json:"count"`
	Names []string `json:"names,omitempty"`
}

// hostsShown bounds the names in a message.
const hostsShown = 10

// Add counts one more host.
func (h *Hosts) Add(name string) { h.Join(Hosts{1, []string{name}}) }

// Join counts more hosts.
func (h *Hosts) Join(more Hosts) {
	h.Count += more.Count
	h.Names = append(slices.Clone(h.Names), more.Names...)
	slices.Sort(h.Names)
	h.Names = slices.Compact(h.Names)
	h.Names = h.Names[:min(len(h.Names), hostsShown)]
}

// thing returns the name of what a signal concerns, for states and groups.
func (s Signal) thing() string {
	switch {
	case s.Object != "":
		return s.Zone + "/" + s.Object
	case s.Task != "":
		return string(s.Task)
	}
	return s.Zone
}
