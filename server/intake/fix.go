package intake

import (
	"context"
	"encoding/json"
	"errors"

	"muster/jobs"
	"muster/scripts"
	"muster/server/draft"
	"muster/server/stock"
)

// A Fixed task runs a runbook that was frozen before: a link of a chain, or the health check of
// a rollout.
type Fixed struct {
	Task     jobs.Task
	Hosts    []string
	Operator string
	Proven   bool
}

// ErrFrozen is wrapped when a frozen runbook cannot be read: it never can be.
var ErrFrozen = errors.New("the frozen runbook cannot be read")

// frozenError is an ErrFrozen with the words of its cause.
type frozenError struct{ error }

// Is reports whether target is ErrFrozen.
func (*frozenError) Is(target error) bool { return target == ErrFrozen }

// Fix drafts a fixed task on its hosts as the inventory has them today. gone are those hosts that
// have left the inventory; if all have, the draft has no hosts.
func (in *Intake) Fix(ctx context.Context, f Fixed) (p draft.Draft, gone []string, err error) {
	v, err := in.Look.Scene(ctx, "")
	if err != nil {
		return p, nil, err
	}
	if v.Stock == nil {
		return p, nil, stock.ErrNone
	}
	hosts, gone := v.Stock.Find(f.Hosts)
	if len(hosts) == 0 {
		return p, gone, nil
	}
	var frozen scripts.Frozen
	if err := json.Unmarshal(f.Task.Spec.Action, &frozen); err != nil {
		return p, gone, &frozenError{err}
	}
	p = draft.Setting{Scene: v, Operator: f.Operator, Proven: f.Proven, Now: in.Now()}.Draft(
		f.Task, hosts)
	p.Blobs = frozen.Blobs()
	return p, gone, nil
}
