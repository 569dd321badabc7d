package api

import (
	"encoding/json"

	"muster/jobs"
)

// EventTaken says that an event is stored.
type EventTaken struct {
	Event   string `json:"event"`
	Seq     int64  `json:"seq"`               // its number
	Durable string `json:"durable,omitempty"` // how far Redis can be trusted to remember it
}

// EventSend is an event that somebody sends by hand.
type EventSend struct {
	Source   string          `json:"source,omitempty"` // as if that source had sent it; empty: hand
	Kind     string          `json:"kind,omitempty"`
	Customer string          `json:"customer,omitempty"` // empty: the whole house
	Body     json.RawMessage `json:"body"`
}

// EventForeseen says what a replay of an event would do. Nothing is done.
type EventForeseen struct {
	Event   string   `json:"event"`
	Refused []string `json:"refused"` // why the caller could not replay it; none: they could
	// Firings are those of the event as it is kept; a replay is an event of its own.
	Firings   []EventFiring     `json:"firings"`
	Decisions []TriggerDecision `json:"decisions"` // of each trigger in force, about a replay now
}

// Event is an event from elsewhere.
type Event struct {
	Event    string          `json:"event"`
	Seq      int64           `json:"seq"`
	Source   string          `json:"source"`
	Kind     string          `json:"kind"`
	Customer string          `json:"customer"` // empty: the whole house
	Class    string          `json:"class"`    // management, result, trigger
	At       jobs.Time       `json:"at"`       // when it was stored
	State    string          `json:"state"`    // waiting, done, stuck, doubted
	Size     int             `json:"size"`     // bytes of the body
	Work     EventWork       `json:"work"`
	By       string          `json:"by,omitempty"`    // the person who sent it by hand
	Again    string          `json:"again,omitempty"` // the event whose body it repeats by hand
	Doubt    string          `json:"doubt,omitempty"` // why no server has vouched for it
	Body     json.RawMessage `json:"body,omitempty"`  // of a single event
}

// EventWork says what was done about an event.
type EventWork struct {
	Tries   int           `json:"tries"`           // that failed
	Error   string        `json:"error,omitempty"` // of the last of them
	Ended   jobs.Time     `json:"ended"`           // null: it waits
	Firings []EventFiring `json:"firings"`         // none: no trigger fits
}

// EventFiring says what an event came to at one trigger.
type EventFiring struct {
	Trigger string `json:"trigger"`
	Task    string `json:"task,omitempty"`
	Why     string `json:"why,omitempty"` // no task was submitted
}

// EventList is the answer of GET /v1/inbox, the newest first.
type EventList struct {
	Events []Event `json:"events"`
	Next   int64   `json:"next,omitempty"` // the next page: before this number; 0: this was the last
}

// EventSource is a source of events with its counts.
type EventSource struct {
	Source   string           `json:"source"`
	Preset   string           `json:"preset"`
	Customer string           `json:"customer"`
	Class    string           `json:"class"`
	Counts   map[string]int64 `json:"counts"`
}

// EventSources is the answer of GET /v1/ingress.
type EventSources struct {
	Sources   []EventSource `json:"sources"`
	Complaint string        `json:"complaint,omitempty"` // why a changed file is not in force
}
