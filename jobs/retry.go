package jobs

// Again is how some jobs of a task are done again by a later one.
type Again struct {
	Task     TaskID   // the later one
	Operator string   // who asked for it …
	Proven   bool     // … by a token
	At       Time     // when
	Coming   bool     // it is being submitted at this moment; nothing of it runs yet
	Hosts    []string // those that it has of the ones asked for, in their order
	Open     int      // jobs on them that have not ended
	Outcomes Counts   // how the others ended; fewer than there are hosts if Redis has forgotten some
}

// NeverBegan tells whether a job ended by order, or by its expiry, before it was begun.
func (j JobInfo) NeverBegan() bool {
	switch j.Outcome {
	case Cancelled, Expired, Superseded:
		return j.Started.IsZero()
	}
	return false
}
