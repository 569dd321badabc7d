package jobs

import (
	"encoding/json"
	"time"
)

// Token fences one attempt: a job's result counts only with the token of its
// latest attempt. Tokens are µs and grow, so a host can tell older from newer.
type Token int64

// Spec is what was asked for, frozen at submit and the same in every zone of
// the task. Workers read it once a task.
type Spec struct {
	Runbook    string          `json:"runbook"`   // name, for people
	Operator   string          `json:"operator"`  // who asked
	Proven     bool            `json:"proven"`    // a token or the kernel says so
	On         string          `json:"on"`        // the selector as it was written
	Inventory  string          `json:"inventory"` // version of the inventory it was resolved with
	Created    Micros          `json:"created"`   // when the server accepted it
	Timeout    time.Duration   `json:"timeout"`   // bound of one attempt up to its next checkpoint
	Expire     time.Duration   `json:"expire"`    // not started so long after due: expired
	Repeatable bool            `json:"repeatable"`
	Needs      []string        `json:"needs,omitempty"` // limits that every job counts against
	Retry      Policy          `json:"retry"`
	Action     json.RawMessage `json:"action"` // the frozen runbook; scripts knows its form
	// Rollout is how it goes out; nil: all at once, whatever fails.
	Rollout *Rollout `json:"rollout,omitempty"`
	Terms
	Timing
}

// Timing says when a job may begin (design §8).
type Timing struct {
	Window   bool          `json:"window,omitempty"`   // only in an approved window of its host
	Expect   time.Duration `json:"expect,omitempty"`   // it takes so long, unless the hub has an estimate
	Reserve  time.Duration `json:"reserve,omitempty"`  // kept within the window for going back
	Override string        `json:"override,omitempty"` // who says why freezes do not hold for it
	After    Micros        `json:"after,omitempty"`    // not before; 0: at once
	// Unsaid: neither the runbook nor a person said how long it takes. Expect is the bound of an
	// attempt then, and it enters a window only where the hub has an estimate at its submit.
	Unsaid bool `json:"unsaid,omitempty"`
}

// Task is one request of an operator as it goes into the queue.
type Task struct {
	ID    TaskID `json:"id"`
	Spec  Spec   `json:"spec"`
	At    Micros `json:"at"` // not before; 0: at once
	Total int    `json:"total"`

	// Own are the times of hosts that have one of their own. The same submit may come
	// with others later: those that came first count.
	Own map[string]Micros `json:"-"`

	// Again says that a retry takes also hosts whose jobs another retry does again.
	Again bool `json:"-"`

	// Guarded says that a job of the task may need a group or a limit: the spec
	// names limits, or is disruptive and a host has a group, or a host has a
	// label that is limited, or it has a Rollout. A task that is not costs nothing at its takes.
	Guarded bool `json:"guarded,omitempty"`
}

// Policy holds the numbers of design §5 that a runbook can set.
type Policy struct {
	Tries int           `json:"tries"` // submit errors before the job ends, 1 or more
	Delay time.Duration `json:"delay"` // between them
}

// DefaultPolicy is three tries, five seconds apart.
func DefaultPolicy() Policy { return Policy{Tries: 3, Delay: 5 * time.Second} }

// Again tells whether there is another try after the failed tries so far, of
// which the last had class c. Failures of class user and operator are final.
func (p Policy) Again(tries int, c Class) bool {
	return c == ClassTransient && tries < p.Tries
}

// The bounds of an attempt.
const (
	// ConnectAllowance is what an attempt may spend before its first step.
	ConnectAllowance = 30 * time.Second
	// KillGrace is what `timeout -k` gives a command between TERM and KILL.
	KillGrace = 5 * time.Second
	// DefaultExpire ends a job that never started (design §5).
	DefaultExpire = 8 * time.Hour
)

// AttemptTimeout is how long the lock of an attempt must hold for a longest
// step of the given bound: connecting, the step, its killing, and the margin.
func AttemptTimeout(step time.Duration) time.Duration {
	t := ConnectAllowance + step + KillGrace
	// The margin is taken off the whole, so 2 % of the whole must be added.
	return t + max(3*time.Second, t/49+time.Nanosecond)
}

// Margin is how much earlier than its lock a child must stop: three seconds or
// 2 %, the larger. It pays for clock drift, killing and a round trip.
func Margin(timeout time.Duration) time.Duration {
	return max(3*time.Second, timeout/50)
}

// LockDelay is how much later than its lock a job becomes due again: five
// seconds or 2 %, the larger.
func LockDelay(timeout time.Duration) time.Duration {
	return max(5*time.Second, timeout/50)
}
