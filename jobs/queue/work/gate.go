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
	return q.proven(ctx, zone, id, step, jobs.ReadGateAnswer(text))
}

// proven adds to an answer its signature, if there is one.
func (q *Work) proven(ctx context.Context, zone string, id jobs.ID, step int,
	a jobs.GateAnswer) (jobs.GateAnswer, error) {
	if a.Word == "" || a.Word == jobs.GateLate {
		return a, nil
	}
	var err error
	a.Proof, err = q.c.Redis().HGet(ctx, keys.Zone(zone, "task:", string(id.Task())),
		codec.ProofField(id, step, a)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return jobs.GateAnswer{}, q.c.Say("gate", err)
	}
	return a, nil
}

// CloseGate records that nobody answered a gate in time. If somebody answered just before, that
// answer counts and is returned.
func (q *Work) CloseGate(ctx context.Context, zone string, id jobs.ID, step int) (jobs.GateAnswer,
	error) {
	late := jobs.GateAnswer{Word: jobs.GateLate, Note: "nobody opened it in time"}
	c, err := q.c.Turn(ctx, zone, codec.GateTurn(id, step, late))
	if err == nil && c.Status == "already" {
		return q.proven(ctx, zone, id, step, jobs.ReadGateAnswer(c.Before))
	}
	return late, err
}
