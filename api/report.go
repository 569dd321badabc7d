package api

import "muster/jobs"

// Report is what became of every host of a task. The parts are a partition: each
// host is in one of them, and their sum is the total, always.
type Report struct {
	Task  jobs.TaskInfo `json:"task"`
	Total int           `json:"total"` // hosts that the task was for
	Parts []ReportPart  `json:"parts"`
	Jobs  []PastJob     `json:"jobs"`  // of whom something is known, by host
	Spent []Spent       `json:"spent"` // what the time of those jobs went to
	Notes []string      `json:"notes"`
}

// ReportPart is how many hosts came to the same end.
type ReportPart struct {
	Name  string `json:"name"` // an outcome, a state, or NotKnown
	Hosts int    `json:"hosts"`
	Means string `json:"means"`
}

// NotKnown is the part of those hosts of whose jobs nothing is known.
const NotKnown = "not known"

// NotEnded is the part of those hosts whose jobs had not ended.
const NotEnded = "not ended"

// PartOfTheRest is the part of those hosts of a task of whose jobs there is nothing.
func PartOfTheRest(t jobs.TaskInfo) string {
	if t.State == jobs.TaskEnded || t.State == "" || t.Forgotten {
		return NotKnown
	}
	return NotEnded
}
