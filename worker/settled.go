package worker

import (
	"context"
	"time"

	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file says what became of a change, by what its host says of it.

// armed reports whether the change that its host was told to make is armed, or returns how the
// step ends.
func (k *confirmStep) armed(f verdict.Evidence, state scripts.Confirmation) (r jobs.Result,
	armed bool) {
	if state.State != scripts.ConfirmArmed {
		return verdict.NotArmed(f, state)
	}
	k.arm(state.Left)
	return jobs.Result{}, true
}

// arm notes that the host says that the change is armed for so long.
func (k *confirmStep) arm(left time.Duration) {
	c := k.at.probed()
	c.Armed, c.Until = true, k.at.now().Add(left)
	k.at.memory.Probe = &c
}

// confirmAway returns the result of a step whose host cannot be asked how its change stands.
func (k *confirmStep) confirmAway(ctx context.Context, action scripts.Action,
	err error) jobs.Result {
	f := k.at.with(action)
	f.Err, f.Cause = err, cause(ctx)
	return verdict.ChangeAway(f, k.at.now())
}

// hearChange puts what was said into the transcript. A proof that is not there yet is tried
// often, and says the same each time.
func (k *confirmStep) hearChange(f verdict.Evidence, state scripts.Confirmation, ok bool) {
	words := verdict.LastWords(f.Result.Output)
	again := state.State == scripts.ConfirmProof && state.Code == scripts.NotYet && words != "" &&
		k.at.probed().Saying == verdict.Shortened(verdict.HostSaid(verdict.NotProven, words),
			verdict.NoteMax)
	if again {
		return
	}
	how := ""
	if ok {
		how = ": " + state.String()
	}
	k.at.remark(f.Action.Name, how)
	k.at.said.Add(verdict.WithoutMark(f.Result.Output))
}
