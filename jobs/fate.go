package jobs

// A Fate is the effect of a chain on a host, as far as known. It is never taken for better than
// known.
type Fate string

// The fates of a host.
const (
	FateUntouched Fate = "untouched" // the main task never began there
	FateOpen      Fate = "open"      // jobs of the chain run or wait there
	FateChanged   Fate = "changed"   // the change is in force
	FateBack      Fate = "back"      // the change was rolled back
	FateFailed    Fate = "failed"    // it failed, and was not rolled back
	FateUnknown   Fate = "unknown"
)

// Fates lists all fates, the worst last.
func Fates() []Fate {
	return []Fate{FateUntouched, FateOpen, FateChanged, FateBack, FateFailed, FateUnknown}
}

// FateOf returns the fate of a host by its job of the main task, and its job of the task that
// rolls back; a job is nil if there is none.
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
	case RolledBack: // the undo itself was rolled back, so the state before it is in force
		return fate
	case Failed:
		if fate != FateBack && fate != FateUnknown {
			return FateFailed
		}
		return fate
	}
	if fate == FateBack { // the host itself reported so
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

// ChainInfo describes a chain to people.
type ChainInfo struct {
	Chain    TaskID     `json:"chain"` // id of its first task
	Runbook  string     `json:"runbook"`
	On       string     `json:"on"`
	Operator string     `json:"operator"`
	Proven   bool       `json:"proven"`
	State    ChainState `json:"state"`
	Why      string     `json:"why,omitempty"` // why it stopped, or rolls back
	Created  Time       `json:"created"`
	At       Time       `json:"at"` // start of the main task; not set: once prepared
	Total    int        `json:"total"`
	Failed   int        `json:"failed"` // hosts, as the budget counts them
	Budget
	ChainOrders
	Tasks []ChainTask `json:"tasks"`
	ChainHosts
}

// ChainHosts describes the hosts of one chain. Lists of chains leave it out.
type ChainHosts struct {
	Fates map[Fate]string `json:"fates,omitempty"` // hosts of each fate, folded
	Waits []Lack          `json:"waits,omitempty"` // what its jobs wait for
}

// ChainTask is a task of a chain.
type ChainTask struct {
	Phase string    `json:"phase"`
	Task  TaskID    `json:"task"`
	Info  *TaskInfo `json:"info,omitempty"` // nil: it was not submitted, or not yet
}
