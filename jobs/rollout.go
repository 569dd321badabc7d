package jobs

import (
	"fmt"
	"time"
)

// Rollout describes how a task goes out: in waves, and until too many jobs have failed. All its
// numbers are fixed at submit.
type Rollout struct {
	Rule
	// Waves holds the number of hosts in each wave, in order; none: all hosts at once.
	Waves []int `json:"waves,omitempty"`
	// Soak is the pause after a wave before the next one opens.
	Soak time.Duration `json:"soak,omitempty"`
	// Gate: a person has to open each wave after the first.
	Gate bool `json:"gate,omitempty"`
	// Health names the runbook of a check on the hosts done so far. It must succeed on all of them
	// before the next wave opens; empty: no check. Check is its frozen task, only in Spec.
	Health string `json:"health,omitempty"`
	Check  *Spec  `json:"check,omitempty"`
}

// Rule says when a task stops. A failure is an outcome for which Fails is true. Failed and begun
// jobs together are never more than MaxFailed + 1, so no more jobs than that can fail, however
// many workers there are.
type Rule struct {
	MaxFailed     *int    `json:"max_failed,omitempty"`     // so many jobs may fail; nil: any number
	UnreachableOK bool    `json:"unreachable_ok,omitempty"` // unreachable hosts do not count
	Breaker       Breaker `json:"breaker,omitzero"`
}

// Breaker stops a task when so many jobs fail within a time. The zero value is no breaker.
type Breaker struct {
	Failures int           `json:"failures"` // 1 to BreakerMax
	Within   time.Duration `json:"within"`
}

// BreakerMax bounds the failures of a breaker, because Redis remembers as many.
const BreakerMax = 100

// WavesMax bounds the waves of a task: see the held jobs in docs/REDIS.md.
const WavesMax = 1000

// Fails reports whether an outcome counts as a failure for a rule. A job that never ran, by order
// or because it expired, does not count.
func (o Outcome) Fails(unreachableOK bool) bool {
	switch o {
	case Failed, Timeout, RolledBack, Unknown:
		return true
	}
	return o == Unreachable && !unreachableOK
}

// RolloutInfo is the progress of a rollout. A person may have raised MaxFailed.
type RolloutInfo struct {
	Rollout
	Wave      int    `json:"wave"`               // the last open one, from 1; 0: there are none
	Failed    int    `json:"failed"`             // jobs, as Rule counts them
	Accepted  int    `json:"accepted,omitempty"` // of Failed, from before the last wave
	Begun     int    `json:"begun"`              // jobs begun and not ended
	Stopped   string `json:"stopped,omitempty"`  // rule, or who and why; empty: it is not
	StoppedAt Time   `json:"stopped_at,omitzero"`
	Over      Time   `json:"over,omitzero"`    // when the open waves were known to have ended
	Pass      bool   `json:"pass,omitempty"`   // a person has let the next wave open
	Checks    TaskID `json:"checks,omitempty"` // the task that checks the hosts of the open waves
}

// Last reports whether all waves are open.
func (r RolloutInfo) Last() bool { return r.Wave >= len(r.Waves) }

// Rolled is the effect of an order about a rollout.
type Rolled struct {
	Task      TaskID `json:"task"`
	Already   bool   `json:"already"`              // the state was the same before; nothing changed
	Stopped   bool   `json:"stopped"`              // the state now
	Note      string `json:"note"`                 // who and why, of the stop in force
	Was       string `json:"was,omitempty"`        // after the end of a stop: why it was stopped
	Failed    int    `json:"failed"`               // jobs, as Rule counts them
	Moved     int    `json:"moved,omitempty"`      // jobs that were moved back into the queue
	Early     string `json:"early,omitempty"`      // to open the next wave: why none was opened
	Wave      int    `json:"wave,omitempty"`       // after an order to open this wave
	Ended     bool   `json:"ended,omitempty"`      // the task has ended: nothing can stop or continue
	MaxFailed *int   `json:"max_failed,omitempty"` // the new budget; nil: the order set none
}

// MayOpen reports whether an order may open a certain wave of a task: only the next one may open,
// because the waves before it show whether it is safe. already reports that the wave is open, so
// that there is nothing to do.
func (t TaskInfo) MayOpen(wave int) (already bool, err error) {
	r := t.Rollout
	switch {
	case r == nil || len(r.Waves) == 0:
		return false, fmt.Errorf("task %s has no waves: leave the wave out", t.Task)
	case wave < 1 || wave > len(r.Waves):
		return false, fmt.Errorf("there is no wave %d: task %s has waves 1 to %d", wave, t.Task,
			len(r.Waves))
	case wave > r.Wave+1:
		return false, fmt.Errorf("wave %d comes before wave %d, and none is passed over: %d of %d are "+
			"open; a wave can be opened when those before it have ended", r.Wave+1, wave, r.Wave,
			len(r.Waves))
	case wave <= r.Wave && r.Stopped != "" && t.State != TaskEnded:
		return false, fmt.Errorf("wave %d is open, and the task is stopped: leave the wave out to let "+
			"it go on", wave)
	}
	return wave <= r.Wave, nil
}

// Early explains why a person cannot open the next wave of a task yet, if the reason is that the
// open waves have not ended; else it is empty.
func (t TaskInfo) Early() string {
	r := t.Rollout
	if r == nil || r.Last() || r.Stopped != "" || !r.Over.IsZero() || t.State == TaskEnded {
		return ""
	}
	open := 0
	for _, n := range r.Waves[:r.Wave] {
		open += n
	}
	return fmt.Sprintf("wave %d of %d is not over yet: %d of the %d jobs so far have ended", r.Wave,
		len(r.Waves), t.Outcomes.Sum(), open)
}
