package jobs

// Again says that a later task retries some jobs.
type Again struct {
	Task     TaskID   // the later task
	Operator string   // the operator who asked for it …
	Proven   bool     // … as a token has proved
	At       Time     // when it was submitted
	Coming   bool     // it is being submitted; no job of it runs yet
	Hosts    []string // those of the requested hosts that it has, in their order
	Open     int      // its jobs on them that have not ended
	Outcomes Counts   // of the others; fewer if Redis has forgotten some
}

// NeverBegan reports whether a job was ended by an order, or by its expiry, before it began.
func (j JobInfo) NeverBegan() bool {
	switch j.Outcome {
	case Cancelled, Expired, Superseded:
		return j.Started.IsZero()
	}
	return false
}
