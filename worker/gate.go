package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/worker/verdict"
)

// This file does the step that waits for a person. Nothing is done on a host: the worker
// asks the queue whether somebody has answered, and gives the job back if not. The answer
// makes the job due, so nobody looks in between.

// Gates is where a worker hears what a person says.
type Gates interface {
	// Gate is how a gate of a job was answered; without a word it was not.
	Gate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer, error)

	// CloseGate says of a gate that nobody has answered in time, unless somebody has.
	CloseGate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer, error)
}

// gateStep does a step of kind gate.
type gateStep struct{ onHost }

func newGateStep(a *attempt) stepKind { return gateStep{onHost{a}} }

// begin waits at the gate, or continues behind it. Nothing is left to do on a host.
func (k gateStep) begin(ctx context.Context, f verdict.Evidence) (r jobs.Result, done, goOn bool) {
	r, goOn = k.pass(ctx, f)
	return r, true, goOn
}

// look is never called: begin does all of a gate.
func (k gateStep) look(context.Context, start) (r jobs.Result, goOn bool) { return r, false }

// pass returns the wait at a gate, or goOn if a person has opened it.
func (k gateStep) pass(ctx context.Context, f verdict.Evidence) (r jobs.Result, goOn bool) {
	gate, name := f.Action.Gate, f.Action.Name
	switch {
	case f.Order != nil:
		return f.NotStarted(verdict.Hindrance{}), false
	case gate.Dry:
		k.at.remark(name, ": a dry run, else a person would be asked")
		k.quote(gate.Question)
		k.at.goOn(nil)
		return r, true
	}
	answer, err := k.hearGate(ctx, k.at.worker.Queue.Gate)
	c := k.at.probed()
	if err == nil && answer.Word == "" && c.Gate != nil && c.Until <= k.at.now() {
		answer, err = k.hearGate(ctx, k.at.worker.Queue.CloseGate)
	}
	if err != nil {
		return k.at.queue().noGo(ctx, f.Action, err), false
	}
	switch answer.Word {
	case jobs.GateOpen:
		k.at.remark(name, ": "+verdict.OneLine(answer.Note))
		k.at.goOn(nil)
		return r, true
	case "":
		if c.Gate == nil {
			k.at.remark(name, ": a person is asked")
			k.quote(gate.Question)
		}
		return verdict.Stands(f, c, k.at.now()), false
	}
	k.at.answered = true // by a person, or by nobody in time: no doubt about the host
	why := verdict.Shut(f, answer)
	k.at.remark(name, ": "+why)
	r = f.End(jobs.Failed, jobs.ClassOperator, why)
	if verdict.Rescues(f, r) {
		k.at.rescue(f.Action, r)
		return r, true
	}
	return r, false
}

// quote puts a question into the transcript.
func (k gateStep) quote(text string) { k.at.said.Add(remote.Output{Head: []byte(text + "\n")}) }

// hearGate asks the queue until there is an answer, or the attempt must end.
func (k gateStep) hearGate(ctx context.Context, ask func(context.Context, string, jobs.ID, int) (
	jobs.GateAnswer, error)) (jobs.GateAnswer, error) {
	for tries := 1; ; tries++ {
		within := min(k.at.worker.cfg.Call, k.at.lease.left())
		call, cancel := context.WithTimeout(ctx, within)
		answer, err := ask(call, k.at.zone, k.at.grant.Job, k.at.step)
		cancel()
		if err == nil {
			return answer, nil
		}
		err = verdict.NoAnswer(err, within)
		timer := time.NewTimer(pause(tries, rand.Float64()))
		select {
		case <-timer.C:
		case <-k.at.halt.ctx.Done():
			timer.Stop()
			return answer, err
		}
	}
}
