package api

import "muster/jobs"

// Calendar is the answer of GET /v1/calendar: what opens and what is frozen in a span of time, in
// order.
type Calendar struct {
	From      jobs.Time         `json:"from"`
	Until     jobs.Time         `json:"until"`
	Customers []string          `json:"customers"` // those whose hosts the caller sees
	Openings  []CalendarOpening `json:"openings"`
	Freezes   []CalendarFreeze  `json:"freezes"`
	More      bool              `json:"more"` // there are more openings than the answer has
}

// CalendarOpening is an occurrence of a window. One that several customers have to approve is there
// once for each of them.
type CalendarOpening struct {
	Occurrence
	For      string `json:"for"`      // as "customer acme"
	Customer string `json:"customer"` // whose hosts and whose approval it is; empty: of all there
	Asks     bool   `json:"asks"`     // it needs an approval
	Hash     string `json:"hash"`     // of the window, see WindowInfo
}

// CalendarFreeze is a stretch of a freeze.
type CalendarFreeze struct {
	Name     string    `json:"name"`
	For      string    `json:"for"`
	Customer string    `json:"customer"`
	Reason   string    `json:"reason"`
	Start    jobs.Time `json:"start"`
	End      jobs.Time `json:"end"` // null: until somebody lifts it
	Ordered  string    `json:"by"`  // who ordered it by hand; empty: it is in a file
}

// ProposeRequest is the body of POST /v1/windows/propose: an opening of one customer, which counts
// for nothing until somebody has approved it.
type ProposeRequest struct {
	OrderRequest
	Name     string   `json:"name"`
	Customer string   `json:"customer"`
	Zone     string   `json:"zone"`   // IANA name
	Start    string   `json:"start"`  // on the clocks of the zone, as 2026-12-24 22:00
	Length   string   `json:"length"` // as 2h
	Runbooks []string `json:"runbooks,omitempty"`
	Check    bool     `json:"check,omitempty"` // answer what would change, do nothing
}

// OpeningsAhead is the answer of GET /v1/plan/openings: what the tasks of the queue would do in the
// openings ahead, by the estimates, if nothing else came.
type OpeningsAhead struct {
	At       jobs.Time      `json:"at"` // when it was made
	Openings []OpeningAhead `json:"openings"`
	Left     []PlannedPart  `json:"left"` // hosts that no opening is long enough for, or none is known
	Notes    []string       `json:"notes"`
}

// OpeningAhead is an opening with the parts of tasks that would be done in it.
type OpeningAhead struct {
	Start   jobs.Time     `json:"start"`
	End     jobs.Time     `json:"end"`
	Windows []string      `json:"windows"`
	Parts   []PlannedPart `json:"parts"`
}

// PlannedPart has those hosts of a task that have one fate.
type PlannedPart struct {
	Task     jobs.TaskID `json:"task"`
	Runbook  string      `json:"runbook"`
	Operator string      `json:"operator"`
	Count    int         `json:"count"`
	Hosts    string      `json:"hosts"`         // folded
	Done     jobs.Time   `json:"done"`          // null: never
	Why      string      `json:"why,omitempty"` // it is never done
}
