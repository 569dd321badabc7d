package kinds

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// runStep does a step of kind run: a command on the host.
type runStep struct {
	onHost

	// send gives the command to the host. A kind that sends something else replaces it.
	send func(context.Context, scripts.Action, remote.Command) (remote.Result, error)
}

func newRunStep(h Hand) Kind { return commandOf(h) }

// commandOf returns a step that gives its command to the host.
func commandOf(h Hand) runStep {
	return runStep{onHost{h}, func(ctx context.Context, _ scripts.Action, c remote.Command) (
		remote.Result, error) {
		return h.Host.Run(ctx, c)
	}}
}

// Look runs the step on its host.
func (k runStep) Look(ctx context.Context, s Start) (r jobs.Result, goOn bool) {
	action := s.Action
	record := k.Records.Record(ctx, action, s.Ask)
	f := k.Job.Evidence(action)
	stdin, err := k.stdin(action)
	if err != nil {
		return f.End(jobs.Failed, jobs.ClassOperator, err.Error()), false
	}
	f = k.run(ctx, f, remote.Command{Shell: action.Shell, Bound: s.Bound, Stdin: stdin,
		Record: record})
	f = k.fresh(f)
	if s.Outside != nil && verdict.Asked(f.Err) == remote.KindNever {
		never := *s.Outside
		never.Never = f.Err
		return k.Times.Defer(f, never), false
	}
	if r, ok := verdict.SecretsLost(f); ok {
		return r, false
	}
	if f.Err == nil {
		k.Course.Disturb(action) // it ran, even if it failed and will be tried again
		f = k.fresh(f)
	}
	if r, goOn = verdict.Judge(f, k.Job.Chance()); goOn {
		k.Course.GoOn(f.Finding().Saved)
	} else if verdict.GoesOnAlone(f) {
		r = verdict.Follow(f, r, k.Job.Now())
	} else if verdict.Rescues(f, r) {
		k.Course.Rescue(action, r)
		goOn = true
	}
	return r, goOn
}

// run has the command run, and returns its end.
func (k runStep) run(ctx context.Context, f verdict.Evidence, c remote.Command) verdict.Evidence {
	free := k.Clock() + c.Bound + jobs.KillGrace + verdict.AnswerTime
	if !k.Alone { // the only step of a runbook needs no title
		k.Notes.Remark(f.Action.Name, "")
	}
	k.Course.Begin()
	run := k.Records.Run(f.Action, c.Record)
	k.Said.Begins(run)
	done := k.Job.Spend(jobs.Acting)
	c.Stop, c.Live, c.Began = k.Stop.Done(), k.Said.Live, k.tellAgain(f, c.Record)
	c.Attached = func(token int64) {
		run.Token = jobs.Token(token)
		k.Said.TakeOver(run)
	}
	f.Result, f.Err = k.send(ctx, f.Action, c)
	done()
	k.Notes.Answered(f.Err)
	k.Notes.Hear(&f.Result)
	f.Busy = max(0, free-k.Clock())
	f.Cause, f.Order = verdict.CauseOf(ctx), k.order()
	return f
}

// tellAgain puts a line between two runs of a step without a title, the only one of its runbook. If
// the host will say whether it starts the step, began puts the line; otherwise tellAgain does.
func (k runStep) tellAgain(f verdict.Evidence, r *remote.Record) (began func()) {
	if !k.Alone || !f.MayHaveBegun() && k.Memory.Again == 0 {
		return nil
	}
	tell := func() {
		k.Said.Again(fmt.Sprintf("attempt %d: the step runs once more", f.Grant.Attempt))
	}
	if r != nil {
		return tell
	}
	tell()
	return nil
}

// stdin returns the standard input of the step; nil if it has none.
func (k runStep) stdin(action scripts.Action) (io.Reader, error) {
	input, err := action.SecretInput(k.Secrets)
	if err != nil || input == nil {
		return nil, err
	}
	return bytes.NewReader(input), nil
}
