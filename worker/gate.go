package worker

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
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

// asking is what is kept of a gate at which the job stands, for those who answer.
type asking struct {
	Name     string `json:"name"`
	Question string `json:"question"`
}

// atGate stands before a gate, or goes through it.
func (a *attempt) atGate(ctx context.Context, f facts) (r jobs.Result, goOn bool) {
	gate, name := f.action.Gate, f.action.Name
	switch {
	case f.order != nil:
		return notStarted(f), false
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
		return a.noGo(ctx, f.action, err), false
	}
	switch answer.Word {
	case jobs.GateOpen:
		a.remark(name, ": "+oneLine(answer.Note))
		a.goOn(nil)
		return r, true
	case "":
		if c.Gate == nil {
			a.remark(name, ": a person is asked")
			a.quote(gate.Question)
		}
		return f.stands(c, a.now()), false
	}
	a.answered = true // by a person, or by nobody in time: no doubt about the host
	why := f.shut(answer)
	a.remark(name, ": "+why)
	r = f.end(jobs.Failed, jobs.ClassOperator, why)
	if f.rescues(r) {
		a.rescue(f.action, r)
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
		err = noAnswer(err, within)
		timer := time.NewTimer(pause(tries, rand.Float64()))
		select {
		case <-timer.C:
		case <-a.halting.Done():
			timer.Stop()
			return answer, err
		}
	}
}

// stands is about a job whose gate nobody has answered. The question stays as it was first
// asked.
func (f facts) stands(c probing, now jobs.Micros) jobs.Result {
	gate := f.action.Gate
	if c.Gate == nil {
		c.Since, c.Until = now, now.Add(gate.Timeout)
		c.Gate = &asking{f.action.Name, gate.Question}
		c.Saying = shortened("waits at the gate "+f.action.Name+" for a person: "+gate.Question, noteMax)
	}
	r := f.appoint(jobs.KindWait, c, c.Until.Sub(now), c.Saying)
	r.Release = gate.Release
	return r
}

// shut says why nobody goes through a gate: it was refused, or not opened in time.
func (f facts) shut(answer jobs.GateAnswer) string {
	if answer.Word == jobs.GateLate {
		return fmt.Sprintf("nobody opened the gate within %s", f.action.Gate.Timeout)
	}
	return oneLine(answer.Note)
}
