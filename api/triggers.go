package api

import (
	"encoding/json"

	"muster/jobs"
)

// TriggerList is the answer of GET /v1/triggers.
type TriggerList struct {
	Triggers []TriggerInfo `json:"triggers"`
	// Complaint says why a changed file is not in force; empty: it is.
	Complaint string `json:"complaint,omitempty"`
}

// TriggerInfo describes a trigger.
type TriggerInfo struct {
	Name      string   `json:"name"`
	Enabled   bool     `json:"enabled"`
	Principal string   `json:"principal"` // to which the file of access grants what it may do
	Sources   []string `json:"sources"`
	Kinds     []string `json:"kinds,omitempty"`
	Customers []string `json:"customers,omitempty"`
	When      []string `json:"when,omitempty"` // the conditions in words
	Runbook   string   `json:"runbook"`
	Args      []string `json:"args,omitempty"` // each with the place of its value
	TriggerAim
	TriggerPast
}

// TriggerAim says which hosts a trigger may mean, and how often.
type TriggerAim struct {
	On       string `json:"on"`
	Narrowed string `json:"narrowed,omitempty"` // how an event leaves hosts out
	AtMost   int    `json:"at_most"`
	Limit    string `json:"limit,omitempty"`
	Debounce string `json:"debounce,omitempty"`
}

// TriggerPast says what a trigger has done.
type TriggerPast struct {
	Recent  int      `json:"recent"`            // firings that count for the limit: the most of a customer
	Waiting []string `json:"waiting,omitempty"` // events that are collected
}

// TriggerTest is the body of POST /v1/triggers/test: an event that did not happen.
type TriggerTest struct {
	Source   string          `json:"source" maxLength:"253"`
	Kind     string          `json:"kind,omitempty" maxLength:"253"`
	Customer string          `json:"customer,omitempty" maxLength:"253"`
	Body     json.RawMessage `json:"body"`
	Trigger  string          `json:"trigger,omitempty"` // only this one; empty: all
}

// TriggerTested is the answer: what each trigger would do. Nothing is done.
type TriggerTested struct {
	Decisions []TriggerDecision `json:"decisions"`
}

// TriggerDecision says what a trigger would do about an event.
type TriggerDecision struct {
	Trigger string            `json:"trigger"`
	Result  string            `json:"result" enum:"passes,fires,collects,limited,refused"`
	Why     []string          `json:"why"` // the reasons why it would not fire now
	Runbook string            `json:"runbook,omitempty"`
	Args    map[string]string `json:"args,omitempty"`  // those that are bound to fields
	Hosts   string            `json:"hosts,omitempty"` // folded
	Total   int               `json:"total,omitempty"`
	Due     jobs.Time         `json:"due,omitzero"` // of a collected event
}

// FiringList is the answer of GET /v1/firings.
type FiringList struct {
	Firings []Firing `json:"firings"`
	Next    int      `json:"next,omitempty"` // the place of the next page; 0: there is none
}

// Firing says what a trigger did about an event.
type Firing struct {
	Event    string      `json:"event"`
	Trigger  string      `json:"trigger"`
	Source   string      `json:"source"`
	Kind     string      `json:"kind,omitempty"`
	Customer string      `json:"customer,omitempty"`
	At       jobs.Time   `json:"at"`
	Result   string      `json:"result" enum:"fires,collects,limited,refused"`
	Why      string      `json:"why,omitempty"`
	Task     jobs.TaskID `json:"task,omitempty"`
	Hosts    int         `json:"hosts,omitempty"`
	Stems    []string    `json:"stems,omitempty"` // triggers that led to it, this one at the end
}
