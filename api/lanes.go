package api

import "muster/jobs"

// LaneInfo is a lane with its tasks in their order, as far as the caller sees them.
type LaneInfo struct {
	Key   string     `json:"key"`
	Stuck string     `json:"stuck,omitempty"` // what a person must decide; empty: nothing
	Tasks []LaneTask `json:"tasks"`
}

// LaneTask is a task in its lane.
type LaneTask struct {
	Task    jobs.TaskID `json:"task"`
	Runbook string      `json:"runbook"`
	By      string      `json:"by"`    // the operator
	Mode    string      `json:"mode"`  // serial, latest, gate or parallel=N
	Since   jobs.Time   `json:"since"` // when it entered
	State   string      `json:"state"` // submitting, waiting, running or failed
	Why     string      `json:"why,omitempty"`
}

// LaneList is the answer of GET /v1/lanes.
type LaneList struct {
	Lanes []LaneInfo `json:"lanes"`
}
