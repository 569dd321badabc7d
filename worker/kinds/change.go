package kinds

import (
	"context"
	"time"

	"muster/internal/trial"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file keeps the state of a change that its host reports.

// armed reports whether the change is armed on its host. If not, r is the end of the step.
func (k *confirmStep) armed(f verdict.Evidence, state trial.State) (r jobs.Result,
	armed bool) {
	if state.Word != trial.Armed {
		return verdict.NotArmed(f, state)
	}
	k.arm(state.Left)
	return jobs.Result{}, true
}

// arm notes that the change is armed, and how much of its time is left.
func (k *confirmStep) arm(left time.Duration) {
	c := k.Memory.Probed()
	c.Armed, c.Until = true, k.Job.Now().Add(left)
	k.Memory.Probe = &c
}

// confirmAway returns the result of a step whose host cannot be asked for the state of its change.
func (k *confirmStep) confirmAway(ctx context.Context, action scripts.Action,
	err error) jobs.Result {
	f := k.Job.Evidence(action)
	f.Err, f.Cause = err, verdict.CauseOf(ctx)
	return verdict.ChangeAway(f, k.Job.Now())
}

// hearChange puts the words of the host into the transcript. A proof is tried often, and the words
// of a try that repeats the one before are left out.
func (k *confirmStep) hearChange(f verdict.Evidence, state trial.State, ok bool) {
	words := verdict.LastWords(f.Result.Output)
	again := state.Word == trial.Proof && state.Code == scripts.NotYet && words != "" &&
		k.Memory.Probed().Saying == verdict.Shortened(verdict.HostSaid(verdict.NotProven, words),
			verdict.NoteMax)
	if again {
		return
	}
	how := ""
	if ok {
		how = ": " + state.String()
	}
	k.Notes.Remark(f.Action.Name, how)
	k.Said.Add(verdict.WithoutMark(f.Result.Output))
}
