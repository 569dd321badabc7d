package attempt

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
func (w *admission) alertOver(ctx context.Context, why string) {
	w.overtime.Do(func() {
		w.at.env.Log.Warn("the job goes on behind the end of its window", "job",
			w.at.grant.Job, "why", why)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.at.env.Config.Call)
		defer cancel()
		err := w.at.env.Agreed.Alert(ctx, w.at.zone, jobs.Alert{Event: eventOvertime,
			Object: string(w.at.grant.Job),
			Detail: map[string]any{"why": why, "runbook": w.at.plan.Spec.Runbook, "step": w.at.step}})
		if err != nil {
			w.at.env.Log.Warn("nobody could be told of it", "job", w.at.grant.Job, "error", err)
		}
	})
}

// watch tells when the window of a running job ends before the job does, also in the
// middle of a long step. It returns how to end that.
func (w *admission) watch(ctx context.Context, end time.Time, now time.Time) (stop func()) {
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
			if left = w.opensFor(ctx); left <= 0 {
				w.alertOver(ctx, overText)
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
func (w *admission) opensFor(ctx context.Context) time.Duration {
	r := w.at.env.Agreed.Current(ctx, jobs.Place(*w.at.grant.Host))
	if r.Book == nil {
		return 0
	}
	return r.Book.OpenFor(jobs.Place(*w.at.grant.Host), r.Now, w.at.plan.Spec.Runbook)
}
