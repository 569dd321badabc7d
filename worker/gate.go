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

// atGate stands before a gate, or goes through it.
func (a *attempt) atGate(ctx context.Context, f verdict.Evidence) (r jobs.Result, goOn bool) {
	gate, name := f.Action.Gate, f.Action.Name
	switch {
	case f.Order != nil:
		return f.NotStarted(verdict.Hindrance{}), false
	case gate.Dry:
		a.remark(name, ": a dry run, else a person would be asked")
		a.quote(gate.Question)
		a.goOn(nil)
		return r, true
	}
	answer, err := a.hearGate(ctx, a.Queue.Gate)
	c := a.probed()
	if err == nil && answer.Word == "" && c.Gate != nil && c.Until <= a.now() {
		answer, err = a.hearGate(ctx, a.Queue.CloseGate)
	}
	if err != nil {
		return a.noGo(ctx, f.Action, err), false
	}
	switch answer.Word {
	case jobs.GateOpen:
		a.remark(name, ": "+verdict.OneLine(answer.Note))
		a.goOn(nil)
		return r, true
	case "":
		if c.Gate == nil {
			a.remark(name, ": a person is asked")
			a.quote(gate.Question)
		}
		return verdict.Stands(f, c, a.now()), false
	}
	a.answered = true // by a person, or by nobody in time: no doubt about the host
	why := verdict.Shut(f, answer)
	a.remark(name, ": "+why)
	r = f.End(jobs.Failed, jobs.ClassOperator, why)
	if verdict.Rescues(f, r) {
		a.rescue(f.Action, r)
		return r, true
	}
	return r, false
}

// quote puts a question into the transcript.
func (a *attempt) quote(text string) { a.said.add(remote.Output{Head: []byte(text + "\n")}) }

// hearGate asks the queue until there is an answer, or the attempt must end.
func (a *attempt) hearGate(ctx context.Context, ask func(context.Context, string, jobs.ID, int) (
	jobs.GateAnswer, error)) (jobs.GateAnswer, error) {
	for tries := 1; ; tries++ {
		within := min(a.cfg.Call, a.lease.left())
		call, cancel := context.WithTimeout(ctx, within)
		answer, err := ask(call, a.zone, a.grant.Job, a.step)
		cancel()
		if err == nil {
			return answer, nil
		}
		err = verdict.NoAnswer(err, within)
		timer := time.NewTimer(pause(tries, rand.Float64()))
		select {
		case <-timer.C:
		case <-a.halting.Done():
			timer.Stop()
			return answer, err
		}
	}
}
