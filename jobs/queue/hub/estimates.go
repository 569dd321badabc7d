package hub

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Estimates stores the durations of runbooks.
type Estimates struct{ c *queue.Conn }

// NewEstimates returns the estimates behind a connection.
func NewEstimates(c *queue.Conn) *Estimates { return &Estimates{c} }

// SaveEstimates stores the durations of runbooks, as JSON, in the fields that workers read.
func (q *Estimates) SaveEstimates(ctx context.Context, list map[string]string) error {
	if len(list) == 0 {
		return nil
	}
	return q.c.Say("estimates", q.c.Redis().HSet(ctx, keys.Hub("estimates", ""), list).Err())
}

// ReplaceEstimates removes all estimates and stores these.
func (q *Estimates) ReplaceEstimates(ctx context.Context, list map[string]string) error {
	_, err := q.c.Redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, keys.Hub("estimates", ""))
		if len(list) > 0 {
			p.HSet(ctx, keys.Hub("estimates", ""), list)
		}
		return nil
	})
	return q.c.Say("estimates", err)
}

// Estimate reads the duration of a runbook from the field that [jobs.EstimateField] returns. It
// returns false if there is no estimate.
func (q *Estimates) Estimate(ctx context.Context, field string) (e jobs.Estimate, ok bool,
	err error) {
	text, err := q.c.Redis().HGet(ctx, keys.Hub("estimates", ""), field).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return e, false, nil
	case err != nil:
		return e, false, q.c.Say("estimates", err)
	}
	err = json.Unmarshal(text, &e)
	return e, err == nil, q.c.Say("estimates", err)
}

// Estimates reads many estimates. Fields without one are missing in the answer.
func (q *Estimates) Estimates(ctx context.Context, fields []string) (map[string]jobs.Estimate,
	error) {
	all := make(map[string]jobs.Estimate, len(fields))
	for chunk := range slices.Chunk(fields, codec.ChunkMax) {
		list, err := q.c.Redis().HMGet(ctx, keys.Hub("estimates", ""), chunk...).Result()
		if err != nil {
			return nil, q.c.Say("estimates", err)
		}
		for i, text := range list {
			var e jobs.Estimate
			if text, ok := text.(string); ok && json.Unmarshal([]byte(text), &e) == nil {
				all[chunk[i]] = e
			}
		}
	}
	return all, nil
}
