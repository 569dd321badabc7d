package kinds

import (
	"context"
	"time"

	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// A Kind does the steps of one kind. The attempt calls its methods in this order. Each returns a
// result, or goOn if the job continues, with another step in hand.
type Kind interface {
	// Begin does the part of a step that needs no host. done means that there is nothing to do on
	// the host now.
	Begin(ctx context.Context, f verdict.Evidence) (r jobs.Result, done, goOn bool)

	// Look does the step on its host, or looks at its state there.
	Look(ctx context.Context, s Start) (r jobs.Result, goOn bool)

	// Away returns the result of a step whose host cannot be reached.
	Away(ctx context.Context, action scripts.Action, err error) jobs.Result
}

// A Start is the permission to work on a step.
type Start struct {
	Action  scripts.Action
	Bound   time.Duration      // the time that the step may take on the host
	Ask     bool               // only ask the host how the step ended, and start nothing
	Outside *verdict.Hindrance // why the step must not start at this time; nil: it may
}

// table has a row for each kind of step: the function that makes a value for one step of an
// attempt.
var table = map[scripts.Kind]func(Hand) Kind{
	scripts.KindRun:     newRunStep,
	scripts.KindCheck:   newCheckStep,
	scripts.KindUpload:  newUploadStep,
	scripts.KindWait:    newWaitStep,
	scripts.KindVerify:  newVerifyStep,
	scripts.KindReboot:  newRebootStep,
	scripts.KindConfirm: newConfirmStep,
	scripts.KindGate:    newGateStep,
	scripts.KindAnsible: newAnsibleStep,
}

// Of returns the value that does a step of kind k for an attempt. The parser of runbooks refuses a
// kind that is not in the table; Of would run it like a command.
func Of(k scripts.Kind, h Hand) Kind {
	if make := table[k]; make != nil {
		return make(h)
	}
	return newRunStep(h)
}

// onHost is the common part of the kinds that work on a host.
type onHost struct{ Hand }

// Begin does nothing, because the step needs its host.
func (k onHost) Begin(context.Context, verdict.Evidence) (r jobs.Result, done, goOn bool) {
	return r, false, false
}

// Away concludes that nothing of the step was sent, unless an earlier attempt may have begun it.
func (k onHost) Away(ctx context.Context, action scripts.Action, err error) jobs.Result {
	f := k.Job.Evidence(scripts.Action{})
	f.Err, f.Cause = err, verdict.CauseOf(ctx)
	r, _ := verdict.Judge(f, k.Job.Chance())
	f.Action = action
	return verdict.Follow(f, r, k.Job.Now())
}
