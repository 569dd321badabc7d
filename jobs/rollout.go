package jobs

import (
	"fmt"
	"time"
)

// Rollout is how a task goes out: in waves, and until too many have failed. All its
// numbers are frozen at submit.
type Rollout struct {
	Rule
	// Waves is how many hosts each wave has, in their order; none: all at once.
	Waves []int `json:"waves,omitempty"`
	// Soak is how long it waits after a wave before the next one opens.
	Soak time.Duration `json:"soak,omitempty"`
	// Gate lets a person open each wave after the first.
	Gate bool `json:"gate,omitempty"`
	// Health names the runbook of a task on the hosts done so far, which must succeed
	// on all of them before the next wave opens; empty: none. Check is that task, as it
	// was frozen; only Spec has it.
	Health string `json:"health,omitempty"`
	Check  *Spec  `json:"check,omitempty"`
}

// Rule says when a task stops. A failure is an outcome of which Fails is true. Failed
// and begun together are never more than MaxFailed + 1, so no more than that can
// fail, however many work at it.
type Rule struct {
	MaxFailed     *int    `json:"max_failed,omitempty"`     // so many jobs may fail; nil: any number
	UnreachableOK bool    `json:"unreachable_ok,omitempty"` // a host that is not reached is no failure
	Breaker       Breaker `json:"breaker,omitzero"`
}

// Breaker stops a task when so many jobs fail within a time. Not set: it has none.
type Breaker struct {
	Failures int           `json:"failures"` // 1 to BreakerMax
	Within   time.Duration `json:"within"`
}

// BreakerMax bounds the failures of a breaker: as many are remembered.
const BreakerMax = 100

// WavesMax bounds the waves of a task: see the held jobs in docs/REDIS.md.
const WavesMax = 1000

// Fails tells whether an outcome counts as a failure for a rule. What never ran by
// order of somebody, or because its time was over, does not.
func (o Outcome) Fails(unreachableOK bool) bool {
	switch o {
	case Failed, Timeout, RolledBack, Unknown:
		return true
	case Unreachable:
		return !unreachableOK
	}
	return false
}

// RolloutInfo is how far a rollout has gone. MaxFailed is what holds now: a person may
// have raised it.
type RolloutInfo struct {
	Rollout
	Wave      int    `json:"wave"`               // the last one that is open, from 1; 0: there are none
	Failed    int    `json:"failed"`             // jobs, as Rule counts them
	Accepted  int    `json:"accepted,omitempty"` // of Failed, those before the last wave was opened
	Begun     int    `json:"begun"`              // jobs that have begun and not ended: they may fail
	Stopped   string `json:"stopped,omitempty"`  // which rule, or who and why; empty: it is not
	StoppedAt Time   `json:"stopped_at,omitzero"`
	Over      Time   `json:"over,omitzero"`    // since when the open waves are known to have ended
	Pass      bool   `json:"pass,omitempty"`   // a person has let the next wave open
	Checks    TaskID `json:"checks,omitempty"` // the task that checks the hosts of the open waves
}

// Last tells whether no wave is left to be opened.
func (r RolloutInfo) Last() bool { return r.Wave >= len(r.Waves) }

// Rolled is what an order about a rollout did.
type Rolled struct {
	Task    TaskID `json:"task"`
	Already bool   `json:"already"`         // it stood so before; nothing was done
	Stopped bool   `json:"stopped"`         // how it stands now
	Note    string `json:"note"`            // who and why; of a stop that stood already, the earlier one
	Was     string `json:"was,omitempty"`   // of what ended a stop: why it was stopped
	Failed  int    `json:"failed"`          // jobs, as Rule counts them
	Moved   int    `json:"moved,omitempty"` // jobs that were brought back
	Early   string `json:"early,omitempty"` // of an order to open the next wave: why none was opened
	Wave    int    `json:"wave,omitempty"`  // of an order to open this one
}

// MayOpen tells whether an order to open a certain wave of a task is to be carried out: it
// is the next one. already: it is open, and nothing is to be done. No wave is passed over:
// those before it show whether it may follow.
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

// Early says why a person cannot open the next wave of a task yet: the open ones are not
// over. Empty: they are, or there is no next one, or that is not what keeps it.
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
