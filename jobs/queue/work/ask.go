package work

import (
	"context"
	"fmt"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/trust"
)

// AnswerAsk stores the evidence that a worker found on the host. If the order was answered before
// or is not the one that the worker has, nothing is stored and the error wraps ErrStale.
func (q *Work) AnswerAsk(ctx context.Context, zone string, f jobs.Reading) error {
	proof := ""
	if q.prove != nil && f.End != nil {
		proof = q.prove(trust.Testimony{Kind: codec.SaidSettled, Job: f.Job, Token: f.End.Token,
			Words: codec.SettledWords(*f.End), Output: codec.SaidOf(*f.End)})
	}
	r, err := q.c.Script(ctx, queue.ScriptAsk, zone, codec.AnswerArgs(f, proof)...)
	if err != nil {
		return err
	}
	status := r.Text()
	r.Text()
	if r.Err != nil {
		return fmt.Errorf("answer about job %s: %w", f.Job, r.Err)
	}
	if status == "stale" {
		return fmt.Errorf("answer about job %s: %w", f.Job, queue.ErrStale)
	}
	return nil
}
