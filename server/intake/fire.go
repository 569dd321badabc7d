package intake

import (
	"context"

	"muster/api"
	"muster/server/draft"
	"muster/server/firing"
)

// SubmitFor makes the task of a trigger, on the way of a submit of a person and with the rights in
// the context. A task that is there already is the answer.
func (in *Intake) SubmitFor(ctx context.Context, r firing.Request) (api.Submitted, error) {
	a, err := in.Submit(ctx, Ask{Body: r.Body, Operator: r.Principal, Proven: true, Reason: r.Reason,
		Waits: draft.Waits{Hold: r.Hold}})
	return a.Submitted, err
}
