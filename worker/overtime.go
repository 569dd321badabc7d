package worker

import (
	"context"
	"sync"
	"time"

	"muster/jobs"
)

// eventOvertime is told when a job goes on although its window is over.
const eventOvertime = "overtime"

const overText = "its window has ended"

// alertOver tells that the job goes on although it is too late to begin, once an attempt.
func (a *attempt) alertOver(ctx context.Context, why string) {
	a.overtime.Do(func() {
		a.Log.Warn("the job goes on behind the end of its window", "job", a.grant.Job, "why", why)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.Call)
		defer cancel()
		err := a.agreed.Alert(ctx, a.zone, jobs.Alert{Event: eventOvertime, Object: string(a.grant.Job),
			Detail: map[string]any{"why": why, "runbook": a.plan.spec.Runbook, "step": a.step}})
		if err != nil {
			a.Log.Warn("nobody could be told of it", "job", a.grant.Job, "error", err)
		}
	})
}

// watch tells when the window of a running job ends before the job does, also in the
// middle of a long step. It returns how to end that.
func (a *attempt) watch(ctx context.Context, end time.Time, now time.Time) (stop func()) {
	if end.IsZero() {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		for left := end.Sub(now); ; {
			timer := time.NewTimer(left)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
			if left = a.opensFor(ctx); left <= 0 {
				a.alertOver(ctx, overText)
				return
			}
		}
	})
	return func() {
		cancel()
		wait.Wait()
	}
}

// opensFor is how long the window of the job is open yet, as far as one has to know now: it
// may have been made longer.
func (a *attempt) opensFor(ctx context.Context) time.Duration {
	r := a.agreed.current(ctx, jobs.Place(*a.grant.Host))
	if r.book == nil {
		return 0
	}
	return r.book.OpenFor(jobs.Place(*a.grant.Host), r.now, a.plan.spec.Runbook)
}
