package kinds

import (
	"context"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/worker/verdict"
)

// gateStep does a step of kind gate, which waits for a person. It does nothing on a host. It asks
// the queue whether somebody has answered, and if not, its job waits without a worker. The answer
// makes the job due, so no worker has to look in between.
type gateStep struct{ onHost }

func newGateStep(h Hand) Kind { return gateStep{onHost{h}} }

// Begin waits at the gate, or continues after it.
func (k gateStep) Begin(ctx context.Context, f verdict.Evidence) (r jobs.Result, done, goOn bool) {
	r, goOn = k.pass(ctx, f)
	return r, true, goOn
}

// Look is never called, because Begin does all of a gate.
func (k gateStep) Look(context.Context, Start) (r jobs.Result, goOn bool) { return r, false }

// pass returns the wait at a gate, or goOn if a person has opened it.
func (k gateStep) pass(ctx context.Context, f verdict.Evidence) (r jobs.Result, goOn bool) {
	gate, name := f.Action.Gate(), f.Action.Name
	switch {
	case f.Order != nil:
		return f.NotStarted(verdict.Hindrance{}), false
	case gate.Dry:
		k.Notes.Remark(name, ": a dry run, so no person is asked")
		k.quote(gate.Question)
		k.Course.GoOn(nil)
		return r, true
	}
	answer, err := k.Gate.Answer(ctx)
	c := k.Memory.Probed()
	if err == nil && answer.Word == "" && c.Gate != nil && c.Until <= k.Job.Now() {
		answer, err = k.Gate.Close(ctx)
	}
	if err != nil {
		return k.Permits.Refused(ctx, f.Action, err), false
	}
	switch answer.Word {
	case jobs.GateOpen:
		k.Notes.Remark(name, ": "+verdict.OneLine(answer.Note))
		k.Course.GoOn(nil)
		return r, true
	case "":
		if c.Gate == nil {
			k.Notes.Remark(name, ": a person is asked")
			k.quote(gate.Question)
		}
		return verdict.Stands(f, c, k.Job.Now()), false
	}
	k.Notes.Answered(nil) // by a person, or by nobody in time: the host is in no doubt
	why := verdict.Shut(f, answer)
	k.Notes.Remark(name, ": "+why)
	r = f.End(jobs.Failed, jobs.ClassOperator, why)
	if verdict.Rescues(f, r) {
		k.Course.Rescue(f.Action, r)
		return r, true
	}
	return r, false
}

// quote puts a question into the transcript.
func (k gateStep) quote(text string) { k.Said.Add(remote.Output{Head: []byte(text + "\n")}) }
