package kinds

import (
	"context"

	"muster/jobs"
	"muster/worker/verdict"
)

// waitStep does a step of kind wait.
type waitStep struct{ watchStep }

func newWaitStep(h Hand) Kind { return waitStep{watchStep{onHost{h}}} }

// Begin waits for a time, if the step has one.
func (k waitStep) Begin(_ context.Context, f verdict.Evidence) (r jobs.Result, done, goOn bool) {
	if f.Order != nil || f.Action.Shell != "" {
		return r, false, false
	}
	r, over := verdict.Waits(f, k.Memory.Probed(), k.Job.Now())
	if over {
		k.Course.GoOn(nil)
	} else {
		k.Notes.Remark(f.Action.Name, ": "+k.saying(r))
	}
	return r, true, over
}
