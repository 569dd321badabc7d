package jobs

import (
	"fmt"
	"time"
)

// A Chain is a sequence of tasks that one order submits: a task that prepares the hosts, the main
// task, and a task that rolls back if too many hosts fail. The ids of its tasks are fixed at the
// beginning, so that any server that continues the chain submits the same tasks.
type Chain struct {
	ID       TaskID `json:"id"` // id of its first task
	Runbook  string `json:"runbook"`
	On       string `json:"on"`
	Operator string `json:"operator"`
	Proven   bool   `json:"proven"`
	Created  Micros `json:"created"`
	At       Micros `json:"at,omitempty"` // start of the main task; 0: once prepared
	Budget
	Hosts []string `json:"hosts"`           // in their order
	Stage *Link    `json:"stage,omitempty"` // prepares the hosts; nil: there is no such task
	Do    Link     `json:"do"`
	Undo  *Link    `json:"undo,omitempty"` // rolls back; nil: there is no such task
}

// Budget bounds the hosts of a chain that may fail, and names the reaction to more failures.
type Budget struct {
	MaxFailed     int  `json:"max_failed"`
	UnreachableOK bool `json:"unreachable_ok,omitempty"` // unreachable hosts do not count
	RollBack      bool `json:"roll_back,omitempty"`      // roll back, instead of only stopping
}

// Link is a task of a chain, with its frozen spec. The task itself shows whether it was submitted.
type Link struct {
	Task TaskID `json:"task"`
	Spec Spec   `json:"spec"`
}

// ChainAsk asks for tasks before or after the main task.
type ChainAsk struct {
	Staged   bool `json:"staged,omitempty"`    // prepare all hosts first
	RollBack bool `json:"roll_back,omitempty"` // roll back all hosts if too many fail
}

// ChainOrders holds what people ordered about a chain after its submit, with who and why, and
// facts that only the leading server knew. Each is written once.
type ChainOrders struct {
	Missed int    `json:"missed"`           // hosts that were not prepared, as the budget counts them
	Begun  bool   `json:"begun"`            // Missed is known, and the main task is submitted
	Next   string `json:"next,omitempty"`   // who lets the chain continue in spite of failures
	Undo   string `json:"undo,omitempty"`   // who ordered the rollback
	Broken string `json:"broken,omitempty"` // why no server can continue the chain
}

// The phases of a chain, named after its tasks.
const (
	PhaseStage = "stage"
	PhaseDo    = "activate"
	PhaseUndo  = "undo"
)

// ChainState is the state of a chain.
type ChainState string

// The states of a chain.
const (
	ChainStaging    ChainState = "staging"
	ChainStaged     ChainState = "staged" // prepared, and waits for its time
	ChainActivating ChainState = "activating"
	ChainUndoing    ChainState = "undoing"
	ChainStopped    ChainState = "stopped" // a person has to decide
	ChainEnded      ChainState = "ended"
)

// ChainMove is the next action in a chain.
type ChainMove string

// The moves of a chain.
const (
	ChainWait   ChainMove = "wait"
	ChainStage  ChainMove = "stage"
	ChainDo     ChainMove = "activate"
	ChainHalt   ChainMove = "halt" // start nothing more of it
	ChainUndo   ChainMove = "undo"
	ChainFinish ChainMove = "finish" // do nothing until a person gives an order
)

// ChainSeen is the state of a chain's tasks; a task is nil until it was submitted as a whole.
type ChainSeen struct {
	Stage, Do, Undo *TaskInfo
	ChainOrders
	Now time.Time
}

// lateMax bounds the delay with which a chain may still begin by itself.
const lateMax = time.Minute

// Next decides the state of a chain, its next action, and why it stops or rolls back. It depends
// only on its arguments, so two servers decide alike.
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

// beforeDo is the part of Next for chains that have changed no host yet.
func (c Chain) beforeDo(s ChainSeen) (ChainState, ChainMove, string) {
	switch {
	case s.ChainOrders.Undo != "":
		return ChainEnded, ChainFinish, s.ChainOrders.Undo + "; nothing was activated"
	case s.Begun:
		return ChainStaging, ChainDo, "" // the server that decided so did not get to submit the task
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

// Missed returns the number of hosts on which the preparation failed, once it has ended.
func (c Chain) Missed(stage TaskInfo) int {
	n := len(c.Hosts) - stage.Outcomes[Succeeded]
	if c.UnreachableOK {
		n -= stage.Outcomes[Unreachable]
	}
	return n
}

// Failed returns the number of failed hosts that count against the budget.
func (c Chain) Failed(s ChainSeen) int {
	failed := 0
	if s.ChainOrders.Next == "" { // else a person accepted those
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

// tooMany explains that too many hosts failed; empty if the budget is kept.
func (c Chain) tooMany(s ChainSeen) string {
	if failed := c.Failed(s); failed > c.MaxFailed {
		return fmt.Sprintf("%d of %d hosts failed, and %d may", failed, len(c.Hosts), c.MaxFailed)
	}
	return ""
}
