package scripts

import "time"

// Runbook says what to do on a host, as ordered steps. Only Parse makes one.
type Runbook struct {
	Name        string
	Version     string // the author's own word; Hash is what tells two apart
	Description string
	Arguments   []Argument // in the order of the file
	Needs       []string   // limits that every job counts against; facts, as fact.os=debian
	Repeatable  bool       // every step may run twice
	Timeout     time.Duration
	Retry       Retry
	Library     string // shell text that stands before every other one
	Steps       []Step // at least one; behind the main ones stand those of on_fail
	Main        int    // how many of Steps are main ones
	Hash        string // SHA-256 of the text it was read from, in hex
	Disturbance
	Timing
	Phases
}

// Disturbance is what a runbook means for the redundancy groups of its hosts.
type Disturbance struct {
	Disruptive bool // traffic may suffer while it runs: one host of a group at a time
	ProveGroup bool // the next host of a group begins only when the one before has succeeded
}

// Phases are what can be done around a runbook.
type Phases struct {
	Staging string // the bool argument with which it only prepares; empty: there is none
	Undo    string // the runbook that takes it back; empty: there is none
}

// Timing is what has to be known of a runbook before it is begun: whether that needs
// a window, and how much of one.
type Timing struct {
	Window  bool          `json:"window,omitempty"`     // begins only in an approved window of its host
	Expect  time.Duration `json:"expect_ns,omitempty"`  // a run usually takes so long; 0: not said
	Reserve time.Duration `json:"reserve_ns,omitempty"` // kept within the window for going back
}

// Retry says how often a job is tried anew when nothing ran on the host.
type Retry struct {
	Submit int           `json:"submit"`   // tries
	Delay  time.Duration `json:"delay_ns"` // between two of them
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

// What a runbook gets if it says nothing else.
const (
	defaultTimeout = 5 * time.Minute
	defaultSubmit  = 3
	defaultDelay   = 5 * time.Second
	defaultMode    = 0o644
	defaultAgain   = 5 * time.Second
)

// The bounds of a runbook. A task carries its runbook and its values through
// Redis and each worker reads them once, so they stay small.
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
	needsMax     = 16  // all of them are taken in one step
	submitMax    = 100
	mistakesMax  = 100 // reported of one file
	rulesMax     = 20  // conditions, classes or values to save of one step
	againMax     = 100 // tries of one step
	probesMax    = 1000

	savedMax    = 4 << 10  // bytes of a saved value
	savedAllMax = 16 << 10 // bytes of all saved values of a job

	timeoutMin = time.Second // what timeout(1) of every host can count
	timeoutMax = 24 * time.Hour
	delayMax   = time.Hour
	waitMax    = 366 * 24 * time.Hour
	expectMax  = 7 * 24 * time.Hour
	reserveMax = 24 * time.Hour
)
