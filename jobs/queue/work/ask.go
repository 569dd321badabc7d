package work

import (
	"context"
	"fmt"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
)

// AnswerAsk stores what a worker found on the host. The error wraps ErrStale, and nothing is
// stored, if the order was answered before or is not the one that the worker has.
func (q *Work) AnswerAsk(ctx context.Context, zone string, f jobs.Reading) error {
	r, err := q.c.Script(ctx, queue.ScriptAsk, zone, codec.AnswerArgs(f)...)
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
