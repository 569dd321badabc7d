package jobs

import (
	"fmt"
	"time"
)

// A Chain is tasks that follow each other as one order: one that only prepares, the one
// that is meant, and if too many fail one that takes it back. Its tasks have their ids
// from the beginning, so whoever goes on with it submits the same ones.
type Chain struct {
	ID       TaskID `json:"id"` // that of its first task
	Runbook  string `json:"runbook"`
	On       string `json:"on"`
	Operator string `json:"operator"`
	Proven   bool   `json:"proven"`
	Created  Micros `json:"created"`
	At       Micros `json:"at,omitempty"` // when it is done; 0: as soon as it is prepared
	Budget
	Hosts []string `json:"hosts"`           // in their order
	Stage *Link    `json:"stage,omitempty"` // nil: nothing is prepared
	Do    Link     `json:"do"`
	Undo  *Link    `json:"undo,omitempty"` // nil: nothing takes it back
}

// Budget is how many hosts of a chain may fail, and what follows when more do.
type Budget struct {
	MaxFailed     int  `json:"max_failed"`
	UnreachableOK bool `json:"unreachable_ok,omitempty"` // a host that is not reached is no failure
	RollBack      bool `json:"roll_back,omitempty"`      // all is taken back, and not only stopped
}

// Link is a task of a chain, as it was frozen. That it is there is known of the task.
type Link struct {
	Task TaskID `json:"task"`
	Spec Spec   `json:"spec"`
}

// ChainAsk is which tasks are to go before one, or to follow it.
type ChainAsk struct {
	Staged   bool `json:"staged,omitempty"`    // prepare it on all hosts first
	RollBack bool `json:"roll_back,omitempty"` // take all back if too many fail
}

// ChainOrders are what people ordered of a chain since, who and why, and what only those
// know who led it. All are written once.
type ChainOrders struct {
	Missed int    `json:"missed"`           // hosts that were not prepared, as the budget counts them
	Begun  bool   `json:"begun"`            // Missed is known: the task that is meant was submitted
	Next   string `json:"next,omitempty"`   // it goes on although something is against it
	Undo   string `json:"undo,omitempty"`   // all is taken back
	Broken string `json:"broken,omitempty"` // why no server can go on with it
}

// The phases of a chain, as its tasks are called.
const (
	PhaseStage = "stage"
	PhaseDo    = "activate"
	PhaseUndo  = "undo"
)

// ChainState is where a chain stands.
type ChainState string

// The states of a chain.
const (
	ChainStaging    ChainState = "staging"
	ChainStaged     ChainState = "staged" // and waits for its moment
	ChainActivating ChainState = "activating"
	ChainUndoing    ChainState = "undoing"
	ChainStopped    ChainState = "stopped" // a person decides
	ChainEnded      ChainState = "ended"
)

// ChainMove is what is next in a chain.
type ChainMove string

// The moves of a chain.
const (
	ChainWait   ChainMove = "wait"
	ChainStage  ChainMove = "stage"
	ChainDo     ChainMove = "activate"
	ChainHalt   ChainMove = "halt" // nothing more of it begins
	ChainUndo   ChainMove = "undo"
	ChainFinish ChainMove = "finish" // nothing is left to do, until a person says so
)

// ChainSeen is how the tasks of a chain stand; nil: it is not there as a whole.
type ChainSeen struct {
	Stage, Do, Undo *TaskInfo
	ChainOrders
	Now time.Time
}

// lateMax is how much later than its moment a chain may begin by itself.
const lateMax = time.Minute

// Next decides where a chain stands, what is next, and why it stops or is taken back. It
// is a function of what was seen: two servers decide alike.
func (c Chain) Next(s ChainSeen) (ChainState, ChainMove, string) {
	switch {
	case s.Broken != "":
		return ChainStopped, ChainFinish, s.Broken
	case s.Do == nil && s.Undo == nil:
		return c.beforeDo(s)
	case s.Undo == nil && s.Do.Total == 0:
		return ChainStopped, ChainFinish, "what became of task " + string(c.Do.Task) +
			" is not kept any more"
	}
	why := c.tooMany(s)
	if s.ChainOrders.Undo != "" {
		why = s.ChainOrders.Undo
	}
	back := why != "" && c.Undo != nil && (c.RollBack || s.ChainOrders.Undo != "")
	switch {
	case s.Undo != nil && s.Undo.State == TaskEnded:
		return ChainEnded, ChainFinish, why
	case s.Undo != nil:
		return ChainUndoing, ChainWait, why
	case back:
		return ChainUndoing, ChainUndo, why
	case s.Do.State == TaskEnded:
		if why == "" && s.Do.Cancelled != "" {
			why = s.Do.Cancelled
		}
		return ChainEnded, ChainFinish, why
	case why != "" && s.Do.Cancelled == "":
		return ChainActivating, ChainHalt, why
	case s.Do.State == TaskQueued && Micros(c.At).Time().After(s.Now):
		return ChainStaged, ChainWait, ""
	}
	return ChainActivating, ChainWait, why
}

// beforeDo is Next as long as nothing was changed on any host.
func (c Chain) beforeDo(s ChainSeen) (ChainState, ChainMove, string) {
	switch {
	case s.ChainOrders.Undo != "":
		return ChainEnded, ChainFinish, s.ChainOrders.Undo + "; nothing was activated"
	case s.Begun:
		return ChainStaging, ChainDo, "" // who decided it did not come to submit it
	case c.Stage == nil:
		return ChainStaging, ChainDo, ""
	case s.Stage == nil:
		return ChainStaging, ChainStage, ""
	case s.Stage.State != TaskEnded:
		return ChainStaging, ChainWait, ""
	}
	staged := s.Stage.Outcomes[Succeeded]
	switch missed := c.Missed(*s.Stage); {
	case s.Stage.Total == 0:
		return ChainStopped, ChainFinish, "what became of staging is not kept any more"
	case staged == 0:
		return ChainStopped, ChainFinish, fmt.Sprintf("staging succeeded on none of %d hosts, see task "+
			"%s", len(c.Hosts), c.Stage.Task)
	case s.ChainOrders.Next != "":
	case s.Stage.Cancelled != "":
		return ChainStopped, ChainFinish, s.Stage.Cancelled
	case missed > c.MaxFailed:
		return ChainStopped, ChainFinish, fmt.Sprintf("staging failed on %d of %d hosts, and %d may: "+
			"see task %s; nothing was activated", missed, len(c.Hosts), c.MaxFailed, c.Stage.Task)
	case c.At != 0 && s.Now.After(c.At.Time().Add(lateMax)):
		return ChainStopped, ChainFinish, fmt.Sprintf("staging was over later than %s, when it was "+
			"to be activated; nothing was", TimeOf(c.At))
	}
	return ChainStaging, ChainDo, ""
}

// Missed is on how many hosts staging counts as failed, once it has ended.
func (c Chain) Missed(stage TaskInfo) int {
	n := len(c.Hosts) - stage.Outcomes[Succeeded]
	if c.UnreachableOK {
		n -= stage.Outcomes[Unreachable]
	}
	return n
}

// Failed is how many hosts have failed, of which the budget is.
func (c Chain) Failed(s ChainSeen) int {
	failed := 0
	if s.ChainOrders.Next == "" { // else those were accepted
		failed = s.ChainOrders.Missed
	}
	if s.Do != nil {
		for o, n := range s.Do.Outcomes {
			if o.Fails(c.UnreachableOK) {
				failed += n
			}
		}
	}
	return failed
}

// tooMany says that the budget is exceeded; empty if it is not.
func (c Chain) tooMany(s ChainSeen) string {
	if failed := c.Failed(s); failed > c.MaxFailed {
		return fmt.Sprintf("%d of %d hosts failed, and %d may", failed, len(c.Hosts), c.MaxFailed)
	}
	return ""
}
