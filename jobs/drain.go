package jobs

// Drain says why selections leave a host out, until an operator undrains it.
type Drain struct {
	Note string `json:"note"`           // who and why
	Only string `json:"only,omitempty"` // check: the host is in quarantine, and takes only checks
	At   Time   `json:"at"`
}

// HostWork shows the lock and the jobs of a host at this moment.
type HostWork struct {
	Lock  ID        `json:"lock,omitempty"` // the job that has locked the host; empty: none
	Until Time      `json:"until"`          // latest end of the lock
	Jobs  []JobInfo `json:"jobs"`           // jobs of the newest tasks, the newest first
}

// Released is the effect of releasing the lock of a host whose job had ended.
type Released struct {
	Host    string `json:"host"`
	Zone    string `json:"zone"`
	Already bool   `json:"already"`       // it was not locked
	Job     ID     `json:"job,omitempty"` // the job that had locked it
	Until   Time   `json:"until"`         // when the lock would have ended; null if it was not locked
}
