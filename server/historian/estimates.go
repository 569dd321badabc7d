package historian

import (
	"context"
	"fmt"

	"muster/history"
)

// Estimates gives workers the estimates that history makes of how long runbooks take.
type Estimates struct {
	Hub  HubEstimates
	Past PastEstimates
}

// HubEstimates are the usual durations of runbooks, as workers read them.
type HubEstimates interface {
	SaveEstimates(ctx context.Context, list map[string]string) error
	ReplaceEstimates(ctx context.Context, list map[string]string) error
}

// PastEstimates are the estimates that history makes.
type PastEstimates interface {
	Estimates(ctx context.Context) ([]history.Estimate, error)
	ForgetEstimates(ctx context.Context) (bool, error)
}

// give makes the estimates of the hub those of history.
func (e Estimates) give(ctx context.Context) error {
	list, err := e.Past.Estimates(ctx)
	if err != nil {
		return err
	}
	return e.Hub.ReplaceEstimates(ctx, estimateFields(list))
}

// save gives the hub the estimates that have changed.
func (e Estimates) save(ctx context.Context, changed []history.Estimate) error {
	return e.Hub.SaveEstimates(ctx, estimateFields(changed))
}

// forget keeps the estimates few.
func (e Estimates) forget(ctx context.Context) error {
	if many, err := e.Past.ForgetEstimates(ctx); err != nil || !many {
		return err
	}
	return e.give(ctx)
}

// estimateFields returns estimates as workers look for them.
func estimateFields(list []history.Estimate) map[string]string {
	out := make(map[string]string, len(list))
	for _, e := range list {
		out[e.Work+"|"+e.Model+"|"+e.Customer] = fmt.Sprintf(`{"p50_ns":%d,"p90_ns":%d,"n":%d}`, e.P50,
			e.P90, e.N)
	}
	return out
}
