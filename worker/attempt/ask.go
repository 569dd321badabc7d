package attempt

import (
	"context"
	"time"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// This file makes the records that hosts keep of steps. By its record an attempt asks a host how an
// earlier attempt at the step ended, before it starts the step or decides about it.

// sinceMargin bounds the difference between the clock of a server, which says when a task was
// created, and the clock of Redis, which makes the tokens.
const sinceMargin = 10 * time.Minute

// jumpMargin bounds a jump back of the clock of Redis since the commit of a task. After a larger
// jump the queue hands out nothing until a person has looked at it.
const jumpMargin = time.Minute

// triesApart separates the numbers by which hosts know two tries of one step: the end of one try
// says nothing about the next.
const triesApart = 1000

// records returns the maker of the records of this attempt.
func (a *Attempt) records() records { return records{a} }

// asks reports whether the attempt must ask the host about a step before it starts the step.
func (r records) asks(action scripts.Action) bool {
	return r.at.evidence().MayHaveBegun() && verdict.Recorded(r.at.grant.Host, action)
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
	if action.Kind == scripts.KindUpload {
		// The locks of attempts before the last one have ended, and so have these attempts.
		made.Again = r.at.grant.Mode == jobs.ModeLost && r.at.step == r.at.grant.Step
		return made
	}
	made.Again, made.Twice, made.Look = r.asks(action), action.Repeatable, look
	made.Marked = made.Marked && r.at.plan.disturbs(action)
	return made
}

// Numbered returns the record of a try of the step in hand.
func (r records) Numbered(try int) *remote.Record {
	return &remote.Record{
		Job:   string(r.at.grant.Job),
		Step:  r.at.step + triesApart*try,
		Token: int64(r.at.grant.Token),
		Since: int64(r.since()),
		// The host begins no step that disturbs it once another job has marked its group.
		Marked: r.at.memory.Marked != 0,
	}
}

// since returns a time before any attempt at the job. A host that has kept records since then can
// show that a step never began. The later since is, the more hosts can show that.
func (r records) since() jobs.Micros {
	spec := r.at.plan.Spec
	since := max(spec.Created, spec.After).Add(-sinceMargin)
	if r.at.committed != 0 {
		since = max(since, r.at.committed.Add(-jumpMargin))
	}
	return max(since, 0)
}

// learnCommit asks the queue when the task was committed, by the clock that makes tokens. Without
// an answer the records rely on the server's clock.
func (r records) learnCommit(ctx context.Context) {
	if r.at.env.Committed == nil || r.at.committed != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(r.at.env.Config.Call, max(r.at.lease.left(), 0)))
	defer cancel()
	at, err := r.at.env.Committed(ctx, r.at.zone, r.at.grant.Job.Task())
	if err != nil {
		r.at.logger().Info("the queue did not say when the task was committed", "error", err)
	}
	r.at.committed = at
}

// Run returns the run that a record stands for; the zero value if no later attempt may attach to
// it. None may if the output has secrets to cover: two attempts could cover it in different places.
func (r records) Run(action scripts.Action, of *remote.Record) jobs.Run {
	if of == nil || action.Kind != scripts.KindRun || len(r.at.secrets.veil) > 0 {
		return jobs.Run{}
	}
	return jobs.Run{Token: r.at.grant.Token, Step: of.Step}
}

// records makes the records of the steps of an attempt.
type records struct{ at *Attempt }
