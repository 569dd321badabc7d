package api

import "muster/jobs"

// Report says how every host of a task ended. The parts are a partition: each host is in exactly
// one of them, and they always sum up to the total.
type Report struct {
	Task  jobs.TaskInfo `json:"task"`
	Total int           `json:"total"` // hosts of the task
	Parts []ReportPart  `json:"parts"`
	Jobs  []PastJob     `json:"jobs"`  // known jobs, by host
	Spent []Spent       `json:"spent"` // uses of the time of those jobs
	Notes []string      `json:"notes"`
}

// ReportPart counts the hosts with the same end.
type ReportPart struct {
	Name  string `json:"name"` // an outcome, a state, or NotKnown
	Hosts int    `json:"hosts"`
	Means string `json:"means"`
}

// NotKnown is the part for hosts about whose jobs nothing is known.
const NotKnown = "not known"

// NotEnded is the part for hosts whose jobs had not ended.
const NotEnded = "not ended"

// PartOfTheRest returns the part for those hosts of a task that have no job.
func PartOfTheRest(t jobs.TaskInfo) string {
	if t.State == jobs.TaskEnded || t.State == "" || t.Forgotten {
		return NotKnown
	}
	return NotEnded
}
