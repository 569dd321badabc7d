package worker

import (
	"context"
	"math/rand/v2"
	"time"

	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// A stepKind does the steps of one kind. The attempt asks it three times, in this order; each
// answer is a result, or goOn: the step in hand is another one now.
type stepKind interface {
	// begin does the part of a step that needs no host. done: there is nothing to do there now.
	begin(ctx context.Context, f verdict.Evidence) (r jobs.Result, done, goOn bool)

	// look does the step on its host, or looks there how it stands.
	look(ctx context.Context, s start) (r jobs.Result, goOn bool)

	// away concludes from a host that cannot be connected with.
	away(ctx context.Context, action scripts.Action, err error) jobs.Result
}

// A start is the permission to work on a step.
type start struct {
	action scripts.Action
	bound  time.Duration // for which it may run on the host
	ask    bool          // the host is only asked what became of it: nothing may start
}

// stepKinds holds the constructor of each kind; its value serves one step of one attempt.
var stepKinds = map[scripts.Kind]func(*attempt) stepKind{
	scripts.KindRun:     newRunStep,
	scripts.KindCheck:   newRunStep,
	scripts.KindUpload:  newUploadStep,
	scripts.KindWait:    newWaitStep,
	scripts.KindVerify:  newVerifyStep,
	scripts.KindReboot:  newRebootStep,
	scripts.KindConfirm: newConfirmStep,
	scripts.KindGate:    newGateStep,
}

// onHost is the part of a step kind that is the same for all that work on a host.
type onHost struct{ at *attempt }

// begin has nothing to do without a host.
func (k onHost) begin(context.Context, verdict.Evidence) (r jobs.Result, done, goOn bool) {
	return r, false, false
}

// away concludes that nothing of the step was sent, unless an earlier attempt may have begun it.
func (k onHost) away(ctx context.Context, action scripts.Action, err error) jobs.Result {
	f := k.at.facts()
	f.Err, f.Cause = err, cause(ctx)
	r, _ := verdict.Judge(f, rand.Float64())
	f.Action = action
	return verdict.Follow(f, r, k.at.now())
}
