package intake

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"muster/jobs"
	"muster/server/fault"
	"muster/trust"
)

// SpecReader reads the spec of a task as Redis has it.
type SpecReader interface {
	Spec(ctx context.Context, id jobs.TaskID) (jobs.Spec, error)
}

// OrderReader reads the order of a task and its signatures; none: Redis has none.
type OrderReader interface {
	Order(ctx context.Context, id jobs.TaskID) (order []byte, signatures []string, err error)
}

// ProvenSpecs reads specs of which servers make other tasks. A server would sign those, so it
// believes only a spec that a server has signed before.
type ProvenSpecs struct {
	Specs  SpecReader
	Orders OrderReader
	Signer Signer
	Now    func() time.Time
}

// Spec returns the spec of a task, if a server of this installation has signed it. Without a key it
// believes Redis.
func (p ProvenSpecs) Spec(ctx context.Context, id jobs.TaskID) (jobs.Spec, error) {
	spec, err := p.Specs.Spec(ctx, id)
	if err != nil || p.Signer == nil {
		return spec, err
	}
	keys, err := p.Signer()
	if err != nil || keys.None() {
		return spec, err
	}
	order, signatures, err := p.Orders.Order(ctx, id)
	if err != nil {
		return spec, err
	}
	by, err := trust.ServersOf(keys, p.Now())
	if err != nil {
		return spec, err
	}
	s, why := trust.Examine(order, signatures, by)
	switch {
	case why != nil:
	case s.Order.Task != id || s.Order.Installation != keys.Installation():
		why = fmt.Errorf("its order is of task %s", s.Order.Task)
	case !reflect.DeepEqual(s.Spec, spec):
		why = fmt.Errorf("its spec is not the one that was signed")
	}
	if why != nil {
		return spec, fault.Contradict(fmt.Sprintf("what Redis has of task %s is not believed: %v; "+
			"submit it anew", id, why))
	}
	return spec, nil
}
