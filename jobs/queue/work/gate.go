package work

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Gate returns the answer at the gate where a job waits; without an answer its Word is empty.
func (q *Work) Gate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer,
	error) {
	text, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "task:", string(id.Task())),
		codec.GateField(id, step)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return jobs.GateAnswer{}, q.c.Say("gate", err)
	}
	return jobs.ReadGateAnswer(text), nil
}

// CloseGate records that nobody answered a gate in time. If somebody answered just before, that
// answer counts and is returned.
func (q *Work) CloseGate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer,
	error) {
	late := jobs.GateAnswer{Word: jobs.GateLate, Note: "nobody opened it in time"}
	c, err := q.c.Turn(ctx, zone, codec.GateTurn(id, step, late))
	if err == nil && c.Status == "already" {
		return jobs.ReadGateAnswer(c.Before), nil
	}
	return late, err
}
