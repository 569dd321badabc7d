package attempt

import (
	"context"
	"errors"
	"time"

	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// A clearance asks the queue whether the steps of an attempt may start.
type clearance struct{ at *Attempt }

// The answers of the queue that keep a step from starting.
var (
	errStale      = errors.New("a newer attempt is under way")
	errNotAllowed = errors.New("the queue does not allow the step")
	errTooLate    = errors.New("its answer came after the end of the lock")
)

// Ask asks for a go for the step in hand. An error says that the step must not begin.
func (c clearance) Ask() error {
	switch v, err := c.checkpoint(c.at.stop.ctx); {
	case err != nil:
		return err
	case v == jobs.Stale:
		return errStale
	case v != jobs.Go:
		return errNotAllowed
	}
	return nil
}

// Refused returns the result of a step that must not begin because of an error of Ask.
func (c clearance) Refused(ctx context.Context, action scripts.Action, err error) jobs.Result {
	switch {
	case errors.Is(err, errStale):
		c.at.stale = true
		return jobs.Result{}
	case errors.Is(err, errNotAllowed):
		return c.notAllowed(action)
	}
	return c.noGo(ctx, action, err)
}

// mayStart asks the queue, if that is necessary, whether the next step may start. If it may not,
// mayStart returns the end of the attempt. It returns look if the attempt must ask the host about
// an earlier attempt at the step, and must start nothing: that is allowed in any case.
func (c clearance) mayStart(ctx context.Context, action scripts.Action) (look bool, end *Ending) {
	asks, f := c.at.records().asks(action), c.at.evidenceFor(action)
	switch {
	case f.Order != nil:
		if asks {
			return true, nil
		}
		return false, &Ending{Result: f.NotStarted(verdict.Hindrance{})}
	case !asks && !c.needsGo(action):
		return false, nil
	}
	v, err := c.checkpoint(c.at.stop.ctx)
	switch {
	case asks && verdict.StoppedBy(c.at.stop.ctx) != nil:
		return true, nil
	case err != nil:
		return false, &Ending{Result: c.noGo(ctx, action, err)}
	case v == jobs.Stale:
		return false, &Ending{Stale: true}
	case v != jobs.Go && !asks:
		return false, &Ending{Result: c.notAllowed(action)}
	}
	return v != jobs.Go, nil
}

// needsGo reports whether the attempt must ask the queue before the next step. The take is a go for
// the first step, if it is fresh enough to show a stop or the loss of Redis, and leaves the step
// all its time. The take of a lost job is no go: the queue hands out such a job also if it is
// cancelled, and with the rest of the lock of its last attempt.
func (c clearance) needsGo(action scripts.Action) bool {
	return c.at.step > c.at.grant.Step || c.at.env.Clock()-c.at.timed.sent > verdict.GoTime ||
		c.at.grant.Mode == jobs.ModeLost ||
		verdict.Room(c.at.lease.left()) < max(action.Timeout, verdict.BoundMin)
}

// checkpoint asks whether the next step may start, until the queue answers or the time is over. A
// go renews the lock, so it extends the lease. The new lease counts from before the call that
// brought the go. A go after the end of the lease counts for nothing: the lock may have expired
// with it, and another job may have had the host since.
func (c clearance) checkpoint(ctx context.Context) (jobs.Verdict, error) {
	question := jobs.Checkpoint{
		Job: c.at.grant.Job, Token: c.at.grant.Token, Step: c.at.step,
		Saved: c.at.memory.Replacing(c.at.grant.Saved),
	}
	c.at.memory.Told = c.at.memory.Told || question.Saved != ""
	if c.at.plan.Proven {
		question.Saved = c.at.env.Trust.Seal(question.Job, question.Step, question.Saved)
	}
	for tries := 1; ; tries++ {
		sent := c.at.env.Clock()
		v, err := c.ask(ctx, question)
		switch {
		case err == nil && v != jobs.Go:
			return v, nil
		case err == nil && c.at.lease.extend(verdict.Deadline(sent, c.at.grant.Timeout)):
			c.wakeClerk()
			return v, nil
		case err == nil:
			return "", errTooLate
		}
		timer := time.NewTimer(verdict.Pause(tries, c.at.env.Chance()))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return "", err
		}
	}
}

// ask asks the queue once.
func (c clearance) ask(ctx context.Context, q jobs.Checkpoint) (jobs.Verdict, error) {
	within := min(c.at.env.Config.Call, c.at.lease.left())
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	v, err := c.at.env.Queue.Checkpoint(ctx, c.at.zone, q)
	return v, verdict.NoAnswer(err, within)
}

// wakeClerk wakes the clerk, which reports the new deadline.
func (c clearance) wakeClerk() {
	select {
	case c.at.lease.moved <- struct{}{}:
	default: // the clerk is awake and will look
	}
}

// noGo returns the result of a job whose step the queue did not allow in time.
func (c clearance) noGo(ctx context.Context, action scripts.Action, err error) jobs.Result {
	f := c.at.evidenceFor(action)
	f.Cause = verdict.CauseOf(ctx)
	if f.Order == nil && errors.Is(f.Cause, verdict.ErrOverdue) {
		return f.NotStarted(verdict.Hindrance{Late: true,
			Why: verdict.Also("no go came from the queue", err.Error())})
	}
	return f.NotStarted(verdict.Hindrance{Why: f.StopWords()})
}

// notAllowed returns the result of a step that the queue did not allow. The queue hands out a lost
// job again also if it is cancelled, so that a worker finds out how it ended. If the worker only
// released the job, the job would come back for ever. So notAllowed first waits for the cancel that
// may be the reason.
func (c clearance) notAllowed(action scripts.Action) jobs.Result {
	if c.at.grant.Mode == jobs.ModeLost {
		timer := time.NewTimer(orderTime)
		defer timer.Stop()
		select {
		case <-c.at.stop.ctx.Done():
		case <-timer.C:
		}
	}
	return c.at.evidenceFor(action).NotStarted(verdict.Hindrance{})
}

// OrdersEvery is the time after which a worker asks again which of its jobs are cancelled.
const OrdersEvery = time.Second

// orderTime is the time for which an attempt at a lost job waits to hear that it was cancelled,
// once the queue has said that nothing more may start.
const orderTime = 3 * OrdersEvery
