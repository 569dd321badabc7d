package jobs

// Drain says why a host is left alone: selections leave it out until somebody
// undrains it.
type Drain struct {
	Note string `json:"note"` // who and why
	At   Time   `json:"at"`
}

// HostWork is what a host has to do with jobs at this moment.
type HostWork struct {
	Lock  ID        `json:"lock,omitempty"` // the job that has the host; empty: none
	Until Time      `json:"until"`          // the lock ends then at the latest
	Jobs  []JobInfo `json:"jobs"`           // of the newest tasks, the newest first
}

// Released is what came of giving a host back that was locked for a job which had ended.
type Released struct {
	Host    string `json:"host"`
	Zone    string `json:"zone"`
	Already bool   `json:"already"`       // it was not locked
	Job     ID     `json:"job,omitempty"` // for which it was
	Until   Time   `json:"until"`         // and would have been; null if it was not
}
