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

// asks tells whether the host must be asked about a step before it is started.
func (r records) asks(action scripts.Action) bool {
	return r.at.mayHaveBegun() && verdict.Recorded(r.at.grant.Host, action)
}

// record is what the host is told of a step; nil: it is not asked. With look it starts nothing.
func (r records) record(action scripts.Action, look bool) *remote.Record {
	if !verdict.Refuses(r.at.grant.Host, action) {
		return nil
	}
	made := r.recordOf(r.at.step + triesApart*r.at.memory.Again)
	if action.Kind == scripts.KindUpload { // later the old lock is over, and so is the old attempt
		made.Again = r.at.grant.Mode == jobs.ModeLost && r.at.step == r.at.grant.Step
		return made
	}
	made.Again, made.Twice, made.Look = r.asks(action), action.Repeatable, look
	made.Marked = made.Marked && r.at.disturbs(action)
	return made
}

// recordOf is the record of this job that has a number.
func (r records) recordOf(number int) *remote.Record {
	return &remote.Record{
		Job:   string(r.at.grant.Job),
		Step:  number,
		Token: int64(r.at.grant.Token),
		Since: int64(r.since()),
		// What disturbs the host is not begun where another job has marked its group since.
		Marked: r.at.memory.Marked != 0,
	}
}

// since is before any attempt at the job. A host whose records are no older shows by them that
// a step never began: the later it is the more of them can.
func (r records) since() jobs.Micros {
	spec := r.at.plan.spec
	since := max(spec.Created, spec.After).Add(-sinceMargin)
	if r.at.committed != 0 {
		since = max(since, r.at.committed.Add(-jumpMargin))
	}
	return max(since, 0)
}

// learnCommit asks the queue when the task was committed, by the clock that makes tokens. If it
// does not say the server's clock must do.
func (r records) learnCommit(ctx context.Context) {
	if r.at.worker.Committed == nil || r.at.committed != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(r.at.worker.cfg.Call, max(r.at.lease.left(), 0)))
	defer cancel()
	at, err := r.at.worker.Committed(ctx, r.at.zone, r.at.grant.Job.Task())
	if err != nil {
		r.at.worker.Log.Info("it is not known when the task was committed", "job",
			r.at.grant.Job, "error", err)
	}
	r.at.committed = at
}

// runOf is the run that a record of a step is about; none if nobody may take it over, or
// if what it says is covered in places: two attempts may cover it otherwise.
func (r records) runOf(action scripts.Action, of *remote.Record) jobs.Run {
	if of == nil || action.Kind != scripts.KindRun || len(r.at.secrets.veil) > 0 {
		return jobs.Run{}
	}
	return jobs.Run{Token: r.at.grant.Token, Step: of.Step}
}

// records makes what hosts are told of the steps of an attempt, for their records.
type records struct{ at *attempt }
