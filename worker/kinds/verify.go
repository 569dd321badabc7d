package kinds

import (
	"context"

	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// verifyStep does a step of kind verify.
type verifyStep struct{ watchStep }

func newVerifyStep(h Hand) Kind { return verifyStep{watchStep{onHost{h}}} }

// Begin pauses before the first probe.
func (k verifyStep) Begin(_ context.Context, f verdict.Evidence) (r jobs.Result, done, goOn bool) {
	if f.Order != nil || k.Memory.Probe != nil {
		return r, false, false
	}
	k.Notes.Remark(f.Action.Name, "")
	return f.Appoint(jobs.KindVerify, verdict.Probing{}, f.Action.Probes.NotReady.First,
		"first probe"), true, false
}

// Away counts a probe that did not reach its host. Before the first probe nothing has begun.
func (k verifyStep) Away(ctx context.Context, action scripts.Action, err error) jobs.Result {
	if k.Memory.Probe == nil {
		return k.onHost.Away(ctx, action, err)
	}
	return k.watchStep.Away(ctx, action, err)
}
