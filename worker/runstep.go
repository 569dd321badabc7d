package worker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// runStep does a step of kind run or check: a command on the host.
type runStep struct {
	onHost
	send func(context.Context, scripts.Action, remote.Command) (remote.Result, error)
}

func newRunStep(a *attempt) stepKind {
	return runStep{onHost{a}, func(ctx context.Context, _ scripts.Action, c remote.Command) (
		remote.Result, error) {
		return a.conn.Run(ctx, c)
	}}
}

// look runs the step on its host.
func (k runStep) look(ctx context.Context, s start) (r jobs.Result, goOn bool) {
	action := s.action
	if k.at.records().asks(action) {
		k.at.records().learnCommit(ctx)
	}
	record := k.at.records().record(action, s.ask)
	f := k.at.with(action)
	stdin, err := k.stdin(action)
	if err != nil {
		return f.End(jobs.Failed, jobs.ClassOperator, err.Error()), false
	}
	f = k.run(ctx, f, remote.Command{Shell: action.Shell, Bound: s.bound, Stdin: stdin,
		Record: record})
	f = k.at.fresh(f)
	if k.at.times.outside != nil && verdict.Asked(f.Err) == remote.KindNever {
		return k.at.times.deferred(f, *k.at.times.outside, f.Err), false
	}
	if r, ok := verdict.SecretsLost(f); ok {
		return r, false
	}
	if f.Err == nil {
		k.at.noteDisturbed(action) // it ran, whatever it says, and may be tried once more
		f = k.at.fresh(f)
	}
	if r, goOn = verdict.Judge(f, rand.Float64()); goOn {
		k.at.goOn(f.Finding().Saved)
	} else if verdict.GoesOnAlone(f) {
		r = verdict.Follow(f, r, k.at.now())
	} else if verdict.Rescues(f, r) {
		k.at.rescue(action, r)
		goOn = true
	}
	return r, goOn
}

// run has the command run, and returns its end.
func (k runStep) run(ctx context.Context, f verdict.Evidence, c remote.Command) verdict.Evidence {
	free := k.at.worker.Clock() + c.Bound + jobs.KillGrace + verdict.AnswerTime
	if len(k.at.plan.book.Steps) > 1 { // one alone needs no title
		k.at.remark(f.Action.Name, "")
	}
	k.at.begin()
	run := k.at.records().runOf(f.Action, c.Record)
	k.at.said.Begins(run)
	done := k.at.on(jobs.Acting)
	c.Stop, c.Live, c.Began = k.at.halt.ctx.Done(), k.at.said.Live, k.tellAgain(c.Record)
	c.Attached = func(token int64) {
		run.Token = jobs.Token(token)
		k.at.said.TakeOver(run)
	}
	f.Result, f.Err = k.send(ctx, f.Action, c)
	done()
	k.at.hasAnswered(f.Err)
	k.at.hears(&f.Result)
	f.Busy = max(0, free-k.at.worker.Clock())
	f.Cause, f.Order = cause(ctx), order(k.at.halt.ctx)
	return f
}

// tellAgain puts a line between two runs of a step that has no title, being alone: now, or by the
// function that it returns, where the host says whether it starts anything.
func (k runStep) tellAgain(r *remote.Record) (began func()) {
	if len(k.at.plan.book.Steps) > 1 || !k.at.mayHaveBegun() && k.at.memory.Again == 0 {
		return nil
	}
	tell := func() {
		k.at.said.Again(fmt.Sprintf("attempt %d: the step runs once more", k.at.grant.Attempt))
	}
	if r != nil {
		return tell
	}
	tell()
	return nil
}

// stdin is what a step gets there; nil: nothing.
func (k runStep) stdin(action scripts.Action) (io.Reader, error) {
	input, err := action.SecretInput(k.at.secrets.texts)
	if err != nil || input == nil {
		return nil, err
	}
	return bytes.NewReader(input), nil
}
