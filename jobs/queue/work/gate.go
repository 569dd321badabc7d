package work

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Gate is how the gate at which a job stands was answered; without a word it was not.
func (q *Work) Gate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer,
	error) {
	text, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "task:", string(id.Task())),
		codec.GateField(id, step)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return jobs.GateAnswer{}, q.c.Say("gate", err)
	}
	return jobs.ReadGateAnswer(text), nil
}

// CloseGate says of a gate that nobody has answered it in time. If somebody has, just now,
// that counts, and is returned.
func (q *Work) CloseGate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer,
	error) {
	late := jobs.GateAnswer{Word: jobs.GateLate, Note: "nobody opened it in time"}
	c, err := q.c.Turn(ctx, zone, codec.GateTurn(id, step, late))
	if err == nil && c.Status == "already" {
		return jobs.ReadGateAnswer(c.Before), nil
	}
	return late, err
}
