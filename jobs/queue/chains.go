package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// The fields of a chain. All but the result are written once, so it does not matter how
// many servers write them.
const (
	chainPlan   = "plan"
	chainMissed = "missed"
	chainNext   = "next"
	chainUndo   = "undo"
	chainBroken = "broken"
	chainResult = "result" // what came of it, while no server has to go on with it
)

// SaveChain keeps a chain before its first task is submitted. It returns the one that was
// kept first under this id, which may be another.
func (q *Queue) SaveChain(ctx context.Context, c jobs.Chain) (jobs.Chain, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	key := hubKey("chain:", string(c.ID))
	_, err = q.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, hubKey("chains", ""), string(c.ID))
		p.HSetNX(ctx, key, chainPlan, text)
		p.Expire(ctx, key, taskKeep)
		return nil
	})
	if err != nil {
		return c, q.say("chain", err)
	}
	return q.Chain(ctx, c.ID)
}

// Chain is a chain as it was submitted: it never changes.
func (q *Queue) Chain(ctx context.Context, id jobs.TaskID) (c jobs.Chain, err error) {
	text, err := q.rdb.HGet(ctx, hubKey("chain:", string(id)), chainPlan).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return c, fmt.Errorf("chain %s: %w", id, ErrNotFound)
	case err != nil:
		return c, q.say("chain", err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("chain %s: what is in Redis cannot be read: %w", id, err)
	}
	return c, nil
}

// ChainOrders are what was decided of a chain, and what came of it; nil: it goes on.
func (q *Queue) ChainOrders(ctx context.Context, id jobs.TaskID) (o jobs.ChainOrders,
	result *jobs.ChainInfo, err error) {
	v, err := q.rdb.HMGet(ctx, hubKey("chain:", string(id)), chainMissed, chainNext, chainUndo,
		chainBroken, chainResult).Result()
	if err != nil {
		return o, nil, q.say("chain", err)
	}
	text := func(i int) string {
		s, _ := v[i].(string)
		return s
	}
	o = jobs.ChainOrders{Begun: v[0] != nil, Next: text(1), Undo: text(2), Broken: text(3)}
	if o.Begun {
		o.Missed, err = strconv.Atoi(text(0))
	}
	if err == nil && v[4] != nil {
		err = json.Unmarshal([]byte(text(4)), &result)
	}
	if err != nil {
		return o, nil, fmt.Errorf("chain %s: what is in Redis cannot be read: %w", id, err)
	}
	return o, result, nil
}

// Chains lists the chains that a server has to go on with.
func (q *Queue) Chains(ctx context.Context) ([]jobs.TaskID, error) {
	ids, err := q.rdb.SMembers(ctx, hubKey("chains", "")).Result()
	if err != nil {
		return nil, q.say("chains", err)
	}
	slices.Sort(ids)
	out := make([]jobs.TaskID, len(ids))
	for i, id := range ids {
		out[i] = jobs.TaskID(id)
	}
	return out, nil
}

// NoteChain keeps what a server found: how many hosts were not prepared, before the task
// that is meant is submitted, or why nobody can go on. What was found first counts.
func (q *Queue) NoteChain(ctx context.Context, id jobs.TaskID, found jobs.ChainOrders) error {
	key := hubKey("chain:", string(id))
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		if found.Begun {
			p.HSetNX(ctx, key, chainMissed, found.Missed)
		}
		if found.Broken != "" {
			p.HSetNX(ctx, key, chainBroken, found.Broken)
		}
		return nil
	})
	return q.say("chain", err)
}

// EndChain takes a chain off the list and keeps what came of it, unless somebody has asked
// something of it meanwhile: then it goes on.
func (q *Queue) EndChain(ctx context.Context, id jobs.TaskID, result jobs.ChainInfo) error {
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	key := hubKey("chain:", string(id))
	err = q.rdb.Watch(ctx, func(tx *redis.Tx) error {
		asked, err := tx.HMGet(ctx, key, chainNext, chainUndo).Result()
		if err != nil {
			return err
		}
		next, _ := asked[0].(string)
		undo, _ := asked[1].(string)
		if next != result.Next || undo != result.Undo {
			return nil
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, key, chainResult, text)
			p.SRem(ctx, hubKey("chains", ""), string(id))
			return nil
		})
		return err
	}, key)
	if errors.Is(err, redis.TxFailedErr) {
		return nil
	}
	return q.say("chain", err)
}

// ForgetChain takes the name of a chain off the list that was never kept.
func (q *Queue) ForgetChain(ctx context.Context, id jobs.TaskID) error {
	return q.say("chain", q.rdb.SRem(ctx, hubKey("chains", ""), string(id)).Err())
}

// AskChain keeps what people ask of a chain, next or undo, and puts it on the list again.
// It is false if that was asked before.
func (q *Queue) AskChain(ctx context.Context, id jobs.TaskID, ask jobs.ChainOrders) (bool, error) {
	key := hubKey("chain:", string(id))
	var fresh *redis.BoolCmd
	_, err := q.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if ask.Undo != "" {
			fresh = p.HSetNX(ctx, key, chainUndo, oneLine(ask.Undo))
		} else {
			fresh = p.HSetNX(ctx, key, chainNext, oneLine(ask.Next))
		}
		p.HDel(ctx, key, chainResult)
		p.SAdd(ctx, hubKey("chains", ""), string(id))
		return nil
	})
	if err != nil {
		return false, q.say("chain", err)
	}
	return fresh.Val(), nil
}
