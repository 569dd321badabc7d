package scripts

import "time"

// Runbook is a procedure for a host, as ordered steps. Only Parse creates one.
type Runbook struct {
	Name        string
	Version     string // the author's own label; only Hash identifies the text
	Description string
	Arguments   []Argument // in the order of the file
	Needs       []string   // limits that every job counts against; facts, as fact.os=debian
	Repeatable  bool       // every step may run twice
	Timeout     time.Duration
	Retry       Retry
	Library     string // shell text that precedes every other one
	Steps       []Step // at least one; those of on_fail come after the main ones
	Main        int    // how many of Steps are main ones
	Hash        string // SHA-256 of the text it was read from, in hex
	Disturbance
	Timing
	Phases
}

// Disturbance describes the effect of a runbook on the redundancy groups of its hosts.
type Disturbance struct {
	Disruptive bool // traffic may suffer while it runs: one host of a group at a time
	ProveGroup bool // the next host of a group begins only when the one before has succeeded
}

// Phases describes the stages of a runbook.
type Phases struct {
	Staging string // bool argument that makes it only prepare; empty: it cannot
	Undo    string // the runbook that reverts it; empty: there is none
}

// Timing is the scheduling information of a runbook: whether it needs a window, and how much
// of one.
type Timing struct {
	Window  bool          `json:"window,omitempty"`     // needs an approved window of its host
	Expect  time.Duration `json:"expect_ns,omitempty"`  // usual duration of a run; 0: unknown
	Reserve time.Duration `json:"reserve_ns,omitempty"` // part of the window for going back
}

// Retry says how often a job is retried if nothing ran on the host.
type Retry struct {
	Submit int           `json:"submit"`   // tries
	Delay  time.Duration `json:"delay_ns"` // between two tries
}

// Argument is one argument of a runbook.
type Argument struct {
	Name        string
	Description string
	Type        Type
	Required    bool
	Default     string   // canonical; counts only if not Required
	Pattern     string   // string, secret: RE2 that the whole value must match
	MaxLength   int      // string, secret: in characters; 0: only the bound of all values
	Min, Max    *int64   // int, and duration in seconds
	Values      []string // enum
}

// Type is the type of an argument.
type Type string

// The types of arguments.
const (
	TypeString   Type = "string"
	TypeInt      Type = "int"
	TypeBool     Type = "bool"
	TypeDuration Type = "duration"
	TypeEnum     Type = "enum"
	TypeFile     Type = "file"
	TypeSecret   Type = "secret"
)

// Defaults for keys that a runbook leaves out.
const (
	defaultTimeout = 5 * time.Minute
	defaultSubmit  = 3
	defaultDelay   = 5 * time.Second
	defaultMode    = 0o644
	defaultAgain   = 5 * time.Second
)

// The limits of a runbook. A task contains its runbook and values in Redis, and each worker
// reads them, so they stay small.
const (
	sourceMax    = 1 << 20  // bytes of one runbook file
	textMax      = 64 << 10 // bytes of a shell text, an inline content or a value
	filesMax     = 1 << 20  // bytes of all files that one task carries
	shellMax     = 1 << 20  // bytes of a shell text once its values are in
	pathMax      = 4096     // bytes of a path on a host, as Linux has it
	nameMax      = 63       // bytes of the name of a runbook, step or argument
	wordMax      = 256      // bytes of a version, a pattern or an enum value
	proseMax     = 4096     // bytes of a description
	argumentsMax = 64
	stepsMax     = 100
	valuesMax    = 100 // of an enum
	needsMax     = 16  // a job takes all of them at once
	submitMax    = 100
	mistakesMax  = 100 // reported of one file
	rulesMax     = 20  // conditions, classes or values to save of one step
	againMax     = 100 // tries of one step
	probesMax    = 1000

	savedMax    = 4 << 10  // bytes of a saved value
	savedAllMax = 16 << 10 // bytes of all saved values of a job

	timeoutMin = time.Second // the smallest unit of timeout(1) on every host
	timeoutMax = 24 * time.Hour
	delayMax   = time.Hour
	waitMax    = 366 * 24 * time.Hour
	expectMax  = 7 * 24 * time.Hour
	reserveMax = 24 * time.Hour
)
