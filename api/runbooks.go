package api

// RunbookArg describes an argument of a runbook.
type RunbookArg struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Default     string `json:"default,omitempty"`
	ArgRules
}

// Runbook describes a runbook.
type Runbook struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Disruptive  bool         `json:"disruptive"`
	Repeatable  bool         `json:"repeatable"`
	Needs       []string     `json:"needs"` // names of limits; facts, as fact.os=debian
	Arguments   []RunbookArg `json:"arguments"`
}

// RunbookList is the answer of GET /v1/runbooks.
type RunbookList struct {
	Runbooks []Runbook `json:"runbooks"`
}

// ArgRules are the rules for values of an argument. Durations are in seconds.
type ArgRules struct {
	Pattern   string   `json:"pattern,omitempty"`
	MaxLength int      `json:"max_length,omitempty"`
	Min       *int64   `json:"min,omitempty"`
	Max       *int64   `json:"max,omitempty"`
	Values    []string `json:"values,omitempty"`
}

// RunbookStep describes a step of a runbook.
type RunbookStep struct {
	Name       string   `json:"name"`
	Kind       string   `json:"kind"`
	Timeout    float64  `json:"timeout_seconds"`
	Repeatable bool     `json:"repeatable"`
	Disruptive bool     `json:"disruptive"`
	Dry        string   `json:"dry,omitempty"`     // preflight or diff
	When       []string `json:"when,omitempty"`    // conditions
	Saves      []string `json:"saves,omitempty"`   // names of values
	OnFail     []string `json:"on_fail,omitempty"` // names of steps
	Rescue     bool     `json:"rescue,omitempty"`  // it belongs to an on_fail
}

// RunbookDetail is the answer of GET /v1/runbooks/{runbook}.
type RunbookDetail struct {
	Runbook
	Version string        `json:"version,omitempty"`
	Hash    string        `json:"sha256"` // of the source
	Timeout float64       `json:"timeout_seconds"`
	Expect  float64       `json:"expect_seconds,omitempty"`
	Reserve float64       `json:"reserve_seconds,omitempty"`
	Window  bool          `json:"window"` // begins only in an approved window
	Steps   []RunbookStep `json:"steps"`
	Source  string        `json:"source"` // the source text
}
