package jobs

// Finding is a contradiction between two places of the queue's data.
type Finding struct {
	What   string `json:"what"`   // kind, one of the words below
	Object string `json:"object"` // id of a job or task, or name of a semaphore
	Detail string `json:"detail"`
	Mended bool   `json:"mended"`
}

// The kinds of a finding.
const (
	FoundTwice    = "twice"     // a job is in more than one of queue, again and held
	FoundNowhere  = "nowhere"   // an unfinished job is in none of them
	FoundEnded    = "ended"     // a finished job is in one of them
	FoundMisplace = "misplaced" // a running job waits as if it had not started
	FoundFar      = "far"       // a running job would be looked at much too late
	FoundLock     = "lock"      // the host of a running job is locked by another
	FoundOrphan   = "orphan"    // a job whose task is gone
	FoundHolder   = "holder"    // a semaphore is held by a job that does not exist or has ended
	FoundIndex    = "index"     // the list of semaphores names one that nobody holds
	FoundOpen     = "open"      // the list of open tasks names one that has ended, or is gone
	// FoundOver: a semaphore has more holders than places. A group is then frozen; a limit recovers.
	FoundOver  = "over limit"
	FoundCount = "count" // a counter is wrong
	FoundBusy  = "busy"  // changed too fast to be compared; look again
)

// Fsck is the result of an examination of a zone.
type Fsck struct {
	Zone     string    `json:"zone"`
	Tasks    int       `json:"tasks"` // number of tasks examined
	Jobs     int       `json:"jobs"`
	Findings []Finding `json:"findings"`
}

// Well reports whether no finding is left that a person should look at.
func (f Fsck) Well() bool {
	for _, x := range f.Findings {
		if !x.Mended && x.What != FoundBusy {
			return false
		}
	}
	return true
}
