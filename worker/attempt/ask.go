package attempt

import (
	"context"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file makes what hosts are told of a step, for the record that they keep. An attempt asks
// them by that record what an earlier attempt did, before it concludes or starts anything.

// sinceMargin is how much earlier than by the server's clock a task may have been made by
// that of Redis, which makes the tokens.
const sinceMargin = 10 * time.Minute

// jumpMargin is how far the clock of Redis may have gone back since it said when a task was
// committed: beyond that the queue takes nothing before somebody has looked.
const jumpMargin = time.Minute

// triesApart is how far the numbers are from each other by which hosts know two tries of one
// step: what became of one says nothing about the next.
const triesApart = 1000

// records returns what makes the records of this attempt.
func (a *Attempt) records() records { return records{a} }

// asks reports whether the host must be asked about a step before it is started.
func (r records) asks(action scripts.Action) bool {
	return r.at.facts().MayHaveBegun() && verdict.Recorded(r.at.grant.Host, action)
}

// Record returns the record of the step in hand; nil if the host keeps none of it. With look the
// host starts nothing.
func (r records) Record(ctx context.Context, action scripts.Action, look bool) *remote.Record {
	if r.asks(action) {
		r.learnCommit(ctx)
	}
	if !verdict.Refuses(r.at.grant.Host, action) {
		return nil
	}
	made := r.Numbered(r.at.memory.Again)
	if action.Kind == scripts.KindUpload { // later the old lock is over, and so is the old attempt
		made.Again = r.at.grant.Mode == jobs.ModeLost && r.at.step == r.at.grant.Step
		return made
	}
	made.Again, made.Twice, made.Look = r.asks(action), action.Repeatable, look
	made.Marked = made.Marked && r.at.disturbs(action)
	return made
}

// Numbered returns the record of a try of the step in hand.
func (r records) Numbered(try int) *remote.Record {
	return &remote.Record{
		Job:   string(r.at.grant.Job),
		Step:  r.at.step + triesApart*try,
		Token: int64(r.at.grant.Token),
		Since: int64(r.since()),
		// What disturbs the host is not begun where another job has marked its group since.
		Marked: r.at.memory.Marked != 0,
	}
}

// since returns a time before any attempt at the job. A host whose records are no older shows by
// them that a step never began. The later since is, the more hosts can show that.
func (r records) since() jobs.Micros {
	spec := r.at.plan.Spec
	since := max(spec.Created, spec.After).Add(-sinceMargin)
	if r.at.committed != 0 {
		since = max(since, r.at.committed.Add(-jumpMargin))
	}
	return max(since, 0)
}

// learnCommit asks the queue when the task was committed, by the clock that makes tokens. If it
// does not say the server's clock must do.
func (r records) learnCommit(ctx context.Context) {
	if r.at.env.Committed == nil || r.at.committed != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(r.at.env.Config.Call, max(r.at.lease.left(), 0)))
	defer cancel()
	at, err := r.at.env.Committed(ctx, r.at.zone, r.at.grant.Job.Task())
	if err != nil {
		r.at.env.Log.Info("it is not known when the task was committed", "job",
			r.at.grant.Job, "error", err)
	}
	r.at.committed = at
}

// Run returns the run that has this record; the zero value if no later attempt may take it over. It
// may not if secrets are covered in the output: two attempts could cover it in different places.
func (r records) Run(action scripts.Action, of *remote.Record) jobs.Run {
	if of == nil || action.Kind != scripts.KindRun || len(r.at.secrets.veil) > 0 {
		return jobs.Run{}
	}
	return jobs.Run{Token: r.at.grant.Token, Step: of.Step}
}

// records makes what hosts are told of the steps of an attempt, for their records.
type records struct{ at *Attempt }
