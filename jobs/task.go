package jobs

import (
	"encoding/json"
	"time"
)

// Token fences one attempt: a result counts only with the token of the job's latest attempt.
// Tokens are µs and grow, so a host can tell older ones from newer ones.
type Token int64

// Spec is the frozen request of a task, the same in each of its zones. Workers read it once.
type Spec struct {
	Runbook    string          `json:"runbook"`   // name, for people
	Operator   string          `json:"operator"`  // who asked
	Proven     bool            `json:"proven"`    // a token or the kernel has proved that
	On         string          `json:"on"`        // the selector as it was written
	Inventory  string          `json:"inventory"` // version of the inventory that resolved it
	Created    Micros          `json:"created"`   // when the server accepted it
	Timeout    time.Duration   `json:"timeout"`   // bound of one attempt up to its next checkpoint
	Expire     time.Duration   `json:"expire"`    // from due to expiry of a job not started
	Repeatable bool            `json:"repeatable"`
	Needs      []string        `json:"needs,omitempty"` // limits that every job counts against
	Retry      Policy          `json:"retry"`
	Action     json.RawMessage `json:"action"` // the frozen runbook, see scripts
	// Rollout describes the waves and the rule; nil: all hosts at once, however many fail.
	Rollout *Rollout `json:"rollout,omitempty"`
	Terms
	Timing
}

// Timing says when a job may begin (design §8).
type Timing struct {
	Window   bool          `json:"window,omitempty"`   // only in an approved window of its host
	Expect   time.Duration `json:"expect,omitempty"`   // duration, if the hub has no estimate
	Reserve  time.Duration `json:"reserve,omitempty"`  // kept within the window for a rollback
	Override string        `json:"override,omitempty"` // who overrides freezes, and why
	After    Micros        `json:"after,omitempty"`    // not before; 0: at once
	// Unsaid: neither the runbook nor a person gave a duration. Expect is then the bound of an
	// attempt, and the job enters a window only if the hub had an estimate at its submit.
	Unsaid bool `json:"unsaid,omitempty"`
}

// Task is one request of an operator as it enters the queue.
type Task struct {
	ID    TaskID `json:"id"`
	Spec  Spec   `json:"spec"`
	At    Micros `json:"at"` // not before; 0: at once
	Total int    `json:"total"`

	// Own holds the times of hosts with a time of their own; of repeated submits the first count.
	Own    map[string]Micros   `json:"-"`
	Beside map[string][]string `json:"-"` // lies beside it in each zone: names and texts in turns
	Trace  string              `json:"-"` // traceparent of the caller, which only the hub has
	// Again: a retry also takes hosts whose jobs another retry does again.
	Again bool `json:"-"`

	// Guarded: a job of the task may need a group or a limit: the spec names limits, or it has a
	// Rollout, or a host has a group or a label with a limit. Other tasks skip these checks.
	Guarded bool `json:"guarded,omitempty"`
}

// Policy holds the numbers of design §5 that a runbook can set.
type Policy struct {
	Tries int           `json:"tries"` // tries before the job ends, 1 or more
	Delay time.Duration `json:"delay"` // pause between them
}

// DefaultPolicy returns three tries, five seconds apart.
func DefaultPolicy() Policy { return Policy{Tries: 3, Delay: 5 * time.Second} }

// Again reports whether there is another try after so many failed tries, the last of class c.
// Failures of class user and operator are final.
func (p Policy) Again(tries int, c Class) bool { return c == ClassTransient && tries < p.Tries }

// The bounds of an attempt.
const (
	// ConnectAllowance bounds the time of an attempt before its first step.
	ConnectAllowance = 30 * time.Second
	// KillGrace is the time that `timeout -k` gives a command between TERM and KILL.
	KillGrace = 5 * time.Second
	// DefaultExpire ends a job that never started (design §5).
	DefaultExpire = 8 * time.Hour
)

// AttemptTimeout returns how long the lock of an attempt must hold if its longest step has the
// given bound: connecting, the step, its killing, and the margin.
func AttemptTimeout(step time.Duration) time.Duration {
	t := ConnectAllowance + step + KillGrace
	// The margin is taken from the whole, so 2 % of the whole must be added.
	return t + max(3*time.Second, t/49+time.Nanosecond)
}

// Margin returns how much earlier than the end of its lock a child must stop: three seconds or 2
// %, the larger. It allows for clock drift, killing and a round trip.
func Margin(timeout time.Duration) time.Duration { return max(3*time.Second, timeout/50) }

// LockDelay returns how much later than the end of its lock a job is due again: the larger of five
// seconds and 2 %.
func LockDelay(timeout time.Duration) time.Duration { return max(5*time.Second, timeout/50) }
