package doctor

import "slices"

// Level says how bad a finding is.
type Level string

// The levels, the worst one last. A thing that nobody could look at is unknown, and never well.
const (
	Well    Level = "ok"
	Note    Level = "note" // worth to know, nothing to do now
	Unknown Level = "unknown"
	Warning Level = "warning"
	Wrong   Level = "wrong"
)

var levels = []Level{Well, Note, Unknown, Warning, Wrong}

// A Finding is the result of a look at one thing.
type Finding struct {
	Level    Level  `json:"level"`
	Check    string `json:"check"`            // such as redis, clock, file
	Object   string `json:"object,omitempty"` // such as a path, a node
	Found    string `json:"found"`
	Expected string `json:"expected,omitempty"`
	Do       string `json:"do,omitempty"`
}

// Report is the answer of the command.
type Report struct {
	Well     bool      `json:"well"` // nothing is to be done
	Version  string    `json:"version"`
	Findings []Finding `json:"findings"` // the worst first
}

// newReport sorts the findings, and keeps their order within a level.
func newReport(version string, list []Finding) Report {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Finding) int {
		return slices.Index(levels, b.Level) - slices.Index(levels, a.Level)
	})
	well := !slices.ContainsFunc(list, func(f Finding) bool { return f.Level.bad() })
	return Report{Well: well, Version: version, Findings: list}
}

// bad reports whether somebody has to do something about a finding.
func (l Level) bad() bool { return l != Well && l != Note }
