package jobs

// A Fate is what a chain made of a host, as far as is known. What is not known is never
// taken for the better.
type Fate string

// The fates of a host.
const (
	FateUntouched Fate = "untouched" // it never began there
	FateOpen      Fate = "open"      // something is under way
	FateChanged   Fate = "changed"   // it is in force
	FateBack      Fate = "back"      // it was taken back
	FateFailed    Fate = "failed"    // it failed, and was not taken back
	FateUnknown   Fate = "unknown"
)

// Fates are all fates, the worst last.
func Fates() []Fate {
	return []Fate{FateUntouched, FateOpen, FateChanged, FateBack, FateFailed, FateUnknown}
}

// FateOf is what became of a host by its jobs of the task that was meant, and of the one
// that takes it back; nil: there is none.
func FateOf(do, undo *JobInfo) Fate {
	switch {
	case do == nil, do.State != Ended && do.Started.IsZero():
		return FateUntouched
	case do.State != Ended, undo != nil && undo.State != Ended:
		return FateOpen
	}
	fate := fateAlone(*do)
	if undo == nil || fate == FateUntouched {
		return fate
	}
	switch undo.Outcome {
	case Succeeded:
		return FateBack
	case Cancelled, Expired, Superseded, Skipped: // it never ran, or was stopped
		if undo.Started.IsZero() || fate == FateBack {
			return fate
		}
		return FateUnknown
	case RolledBack: // what was in force before the undo is so again
		return fate
	case Failed:
		if fate != FateBack && fate != FateUnknown {
			return FateFailed
		}
		return fate
	}
	if fate == FateBack { // the host itself said so
		return fate
	}
	return FateUnknown
}

func fateAlone(do JobInfo) Fate {
	switch do.Outcome {
	case Succeeded:
		return FateChanged
	case RolledBack:
		return FateBack
	case Failed:
		return FateFailed
	case Cancelled, Expired, Superseded, Skipped:
		if do.Started.IsZero() {
			return FateUntouched
		}
	}
	return FateUnknown
}

// ChainInfo is a chain as people see it.
type ChainInfo struct {
	Chain    TaskID     `json:"chain"` // that of its first task
	Runbook  string     `json:"runbook"`
	On       string     `json:"on"`
	Operator string     `json:"operator"`
	Proven   bool       `json:"proven"`
	State    ChainState `json:"state"`
	Why      string     `json:"why,omitempty"` // why it stopped, or is taken back
	Created  Time       `json:"created"`
	At       Time       `json:"at"` // the moment; not set: as soon as it is prepared
	Total    int        `json:"total"`
	Failed   int        `json:"failed"` // hosts, as the budget counts them
	Budget
	ChainOrders
	Tasks []ChainTask `json:"tasks"`
	ChainHosts
}

// ChainHosts are the hosts of one chain; of a list of chains they are left out.
type ChainHosts struct {
	Fates map[Fate]string `json:"fates,omitempty"` // hosts, folded
	Waits []Lack          `json:"waits,omitempty"` // what its jobs wait for
}

// ChainTask is a task of a chain.
type ChainTask struct {
	Phase string    `json:"phase"`
	Task  TaskID    `json:"task"`
	Info  *TaskInfo `json:"info,omitempty"` // nil: it is not there (yet)
}
