package attempt

import (
	"context"
	"sync"
	"time"

	"muster/jobs"
)

// eventOvertime is the event of a job that continues after the end of its window.
const eventOvertime = "overtime"

const overText = "its window has ended"

// alertOver sends the alert that the job continues after the end of its window, once an attempt.
func (w *admission) alertOver(ctx context.Context, why string) {
	w.overtime.Do(func() {
		w.at.logger().Warn("the job continues after the end of its window", "why", why)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.at.env.Config.Call)
		defer cancel()
		err := w.at.env.Agreed.Alert(ctx, w.at.zone, jobs.Alert{Event: eventOvertime,
			Object: string(w.at.grant.Job),
			Detail: map[string]any{"why": why, "runbook": w.at.plan.Spec.Runbook, "step": w.at.step}})
		if err != nil {
			w.at.logger().Warn("the alert about the end of a window was not sent", "error", err)
		}
	})
}

// watch sends the alert when the window of a running job ends before the job does, also in the
// middle of a long step. The caller calls stop at the end of the job.
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
			if left = w.openFor(ctx); left <= 0 {
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

// openFor returns the rest of the window of the job, by the timetable of this moment: somebody may
// have made the window longer.
func (w *admission) openFor(ctx context.Context) time.Duration {
	r := w.at.env.Agreed.Current(ctx, jobs.Place(*w.at.grant.Host))
	if r.Book == nil {
		return 0
	}
	return r.Book.OpenFor(jobs.Place(*w.at.grant.Host), r.Now, w.at.plan.Spec.Runbook)
}
