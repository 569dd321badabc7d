package attempt

import (
	"context"
	"time"

	"muster/jobs"
	"muster/scripts"
	"muster/worker/said"
	"muster/worker/verdict"
)

// This file holds an attempt as its worker sees it. Run belongs to a goroutine of its own; the
// worker may call the other methods meanwhile.

// stuckAfter is the time that an attempt may take to stop after its deadline. It is less than the
// margin of every lock.
const stuckAfter = 2 * time.Second

// An Attempt is one try at a job, from its take to its result.
type Attempt struct {
	env   *Env
	zone  string
	grant jobs.Grant
	plan  Plan
	lease *lease

	stop  stopper
	timed timing

	progress
	group      *groupMarks
	times      *admission
	transcript *said.Transcript

	secrets secrets
}

// A stopper holds the context of an attempt's steps. The context ends with the one of the attempt,
// and when the job is cancelled.
type stopper struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// progress is the part of an attempt that its steps change.
type progress struct {
	step     int // the step in hand, or the next one
	kind     scripts.Kind
	memory   verdict.Memory
	begun    bool // this attempt has started a step
	answered bool // the host said how the last command ended
	attached bool // to a step that an earlier attempt began
	conn     Conn // nil: none yet
	stale    bool // a newer attempt is under way

	committed jobs.Micros // the commit of the task, by the clock of Redis; 0: not asked yet
}

// timing holds the times of an attempt, on the boot clock.
type timing struct {
	sent      time.Duration // before the take
	began     time.Duration
	tooLate   bool          // the lease was over by then
	firstStep time.Duration // when the first step was begun; 0: none was
	clocks    stopwatch
}

// Ending is the end of an attempt.
type Ending struct {
	Token  jobs.Token
	Result jobs.Result
	Stale  bool // a newer attempt is under way: there is no result
}

// Begin gives the attempt its time, which counts from sent, before the take was sent. It returns
// the context for Run. Each time the end of that time moves, moved gets a value if it has room.
func (a *Attempt) Begin(ctx context.Context, sent time.Duration,
	moved chan<- struct{}) context.Context {
	ctx, a.lease = newLease(ctx, a.env.Clock, verdict.Deadline(sent, a.grant.Timeout))
	a.lease.moved = moved
	a.stop.ctx, a.stop.cancel = context.WithCancelCause(ctx)
	a.timed.sent, a.timed.began = sent, a.env.Clock()
	a.timed.tooLate = a.lease.left() <= 0
	return ctx
}

// Run works on the job, or asks its host how it ended, if the job was handed out for that.
func (a *Attempt) Run(ctx context.Context) Ending {
	if a.grant.Mode.Looks() {
		return looker{a}.find(ctx)
	}
	return a.run(ctx)
}

// Close frees what Begin has made. The caller calls it once Run has returned.
func (a *Attempt) Close() {
	a.stop.cancel(nil)
	a.lease.stop()
}

// Grant returns the job as the queue handed it out.
func (a *Attempt) Grant() jobs.Grant { return a.grant }

// Voice returns what the host says, for people who listen.
func (a *Attempt) Voice() *said.Voice { return a.transcript.Live }

// Began returns the time of Begin on the boot clock.
func (a *Attempt) Began() time.Duration { return a.timed.began }

// TooLate reports whether the time of the attempt was over when it began.
func (a *Attempt) TooLate() bool { return a.timed.tooLate }

// Until returns the end of the attempt's time, on the boot clock.
func (a *Attempt) Until() time.Duration { return a.lease.until() }

// MustEnd returns the time by which the attempt must have stopped after its end, on the boot clock.
func (a *Attempt) MustEnd() time.Duration {
	return max(a.lease.until(), a.timed.began, a.lease.expiredAt()) + stuckAfter
}

// Expire ends the time of the attempt, and reports whether it had not ended before: in a process
// that was stopped for a while others may look before its timers fire.
func (a *Attempt) Expire() (first bool) { return a.lease.expireNow() }

// Stop stops the job on its host, because it is cancelled.
func (a *Attempt) Stop(o *verdict.StopOrder) { a.stop.cancel(o) }

// Stopped reports whether the job was stopped because it is cancelled.
func (a *Attempt) Stopped() bool { return verdict.StoppedBy(a.stop.ctx) != nil }
