package worker

import (
	"context"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file is about hosts that keep a record of the steps they are given: what an earlier
// attempt did is asked there, before anything is said or started.

// sinceMargin is how much earlier than by the server's clock a task may have been made by
// that of Redis, which makes the tokens.
const sinceMargin = 10 * time.Minute

// jumpMargin is how far the clock of Redis may have gone back since it said when a task was
// committed: beyond that the queue takes nothing before somebody has looked.
const jumpMargin = time.Minute

// triesApart is how far the numbers are from each other by which hosts know two tries of one
// step: what became of one says nothing about the next.
const triesApart = 1000

// mayHaveBegun reports whether an earlier attempt may have started the step in hand.
func (a *attempt) mayHaveBegun() bool { return a.facts().MayHaveBegun() }

// asks tells whether the host must be asked about a step before it is started.
func (a *attempt) asks(action scripts.Action) bool {
	return a.mayHaveBegun() && verdict.Recorded(a.grant.Host, action)
}

// record is what the host is told of a step; nil: it is not asked. With look it starts nothing.
func (a *attempt) record(action scripts.Action, look bool) *remote.Record {
	if !verdict.Refuses(a.grant.Host, action) {
		return nil
	}
	r := a.recordOf(a.step + triesApart*a.memory.Again)
	if action.Kind == scripts.KindUpload { // later the old lock is over, and so is the old attempt
		r.Again = a.grant.Mode == jobs.ModeLost && a.step == a.grant.Step
		return r
	}
	r.Again, r.Twice, r.Look = a.asks(action), action.Repeatable, look
	r.Marked = r.Marked && a.disturbs(action)
	return r
}

// recordOf is the record of this job that has a number.
func (a *attempt) recordOf(number int) *remote.Record {
	return &remote.Record{
		Job:   string(a.grant.Job),
		Step:  number,
		Token: int64(a.grant.Token),
		Since: int64(a.since()),
		// What disturbs the host is not begun where another job has marked its group since.
		Marked: a.memory.Marked != 0,
	}
}

// since is before any attempt at the job. A host whose records are no older shows by them that
// a step never began: the later it is the more of them can.
func (a *attempt) since() jobs.Micros {
	spec := a.plan.spec
	since := max(spec.Created, spec.After).Add(-sinceMargin)
	if a.committed != 0 {
		since = max(since, a.committed.Add(-jumpMargin))
	}
	return max(since, 0)
}

// learnCommit asks the queue when the task was committed, by the clock that makes tokens. If it
// does not say the server's clock must do.
func (a *attempt) learnCommit(ctx context.Context) {
	if a.Committed == nil || a.committed != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(a.cfg.Call, max(a.lease.left(), 0)))
	defer cancel()
	at, err := a.Committed(ctx, a.zone, a.grant.Job.Task())
	if err != nil {
		a.Log.Info("it is not known when the task was committed", "job", a.grant.Job, "error", err)
	}
	a.committed = at
}

// runOf is the run that a record of a step is about; none if nobody may take it over, or
// if what it says is covered in places: two attempts may cover it otherwise.
func (a *attempt) runOf(action scripts.Action, r *remote.Record) jobs.Run {
	if r == nil || action.Kind != scripts.KindRun || len(a.veil) > 0 {
		return jobs.Run{}
	}
	return jobs.Run{Token: a.grant.Token, Step: r.Step}
}
