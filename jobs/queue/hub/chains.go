package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Chains stores tasks that follow each other.
type Chains struct {
	c  *queue.Conn
	by Voucher
}

// NewChains returns the chains behind a connection.
func NewChains(c *queue.Conn) *Chains { return &Chains{c, unsigned{}} }

// VouchedBy returns the same chains, which v signs.
func (q *Chains) VouchedBy(v Voucher) *Chains { return &Chains{q.c, v} }

// The fields of a chain. All but the result are written once, so several servers may write them.
const (
	chainPlan   = "plan"
	chainMissed = "missed"
	chainNext   = "next"
	chainUndo   = "undo"
	chainBroken = "broken"
	chainResult = "result" // the final result, as long as no server has to continue the chain
)

// SaveChain stores a chain before its first task is submitted. It returns the chain that was stored
// first under this id, which may be another.
func (q *Chains) SaveChain(ctx context.Context, c jobs.Chain) (jobs.Chain, error) {
	plain, err := json.Marshal(c)
	if err != nil {
		return c, err
	}
	text, err := q.by.Vouch(string(c.ID), string(plain))
	if err != nil {
		return c, err
	}
	key := keys.Hub("chain:", string(c.ID))
	_, err = q.c.Redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, keys.Hub("chains", ""), string(c.ID))
		p.HSetNX(ctx, key, chainPlan, text)
		p.Expire(ctx, key, codec.TaskKeep)
		return nil
	})
	if err != nil {
		return c, q.c.Say("chain", err)
	}
	return q.Chain(ctx, c.ID)
}

// Chain returns a chain as it was submitted: it never changes.
func (q *Chains) Chain(ctx context.Context, id jobs.TaskID) (c jobs.Chain, err error) {
	kept, err := q.c.Redis().HGet(ctx, keys.Hub("chain:", string(id)), chainPlan).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return c, fmt.Errorf("chain %s: %w", id, queue.ErrNotFound)
	case err != nil:
		return c, q.c.Say("chain", err)
	}
	text, doubt := q.by.Vouched(string(id), kept)
	if doubt != nil {
		return c, fmt.Errorf("chain %s: what is in Redis is not believed: %w", id, doubt)
	}
	if err := codec.Strictly(text, &c); err != nil {
		return c, fmt.Errorf("chain %s: what is in Redis cannot be read: %w", id, err)
	}
	return c, nil
}

// ChainOrders returns the decisions about a chain, and its result: nil while the chain runs.
func (q *Chains) ChainOrders(ctx context.Context, id jobs.TaskID) (o jobs.ChainOrders,
	result *jobs.ChainInfo, err error) {
	v, err := q.c.Redis().HMGet(ctx, keys.Hub("chain:", string(id)), chainMissed, chainNext, chainUndo,
		chainBroken, chainResult).Result()
	if err != nil {
		return o, nil, q.c.Say("chain", err)
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

// Chains returns the chains that a server has to continue.
func (q *Chains) Chains(ctx context.Context) ([]jobs.TaskID, error) {
	ids, err := q.c.Redis().SMembers(ctx, keys.Hub("chains", "")).Result()
	if err != nil {
		return nil, q.c.Say("chains", err)
	}
	slices.Sort(ids)
	out := make([]jobs.TaskID, len(ids))
	for i, id := range ids {
		out[i] = jobs.TaskID(id)
	}
	return out, nil
}

// NoteChain stores a finding of a server: the number of hosts that were not prepared, before the
// main task is submitted, or why the chain cannot continue. The first finding counts.
func (q *Chains) NoteChain(ctx context.Context, id jobs.TaskID, found jobs.ChainOrders) error {
	key := keys.Hub("chain:", string(id))
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		if found.Begun {
			p.HSetNX(ctx, key, chainMissed, found.Missed)
		}
		if found.Broken != "" {
			p.HSetNX(ctx, key, chainBroken, found.Broken)
		}
		return nil
	})
	return q.c.Say("chain", err)
}

// EndChain takes a chain off the list and stores its result. If a person has ordered something
// meanwhile, the chain stays and continues.
func (q *Chains) EndChain(ctx context.Context, id jobs.TaskID, result jobs.ChainInfo) error {
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	key := keys.Hub("chain:", string(id))
	err = q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
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
			p.SRem(ctx, keys.Hub("chains", ""), string(id))
			return nil
		})
		return err
	}, key)
	if errors.Is(err, redis.TxFailedErr) {
		return nil
	}
	return q.c.Say("chain", err)
}

// ForgetChain takes the name of a chain that was never stored off the list.
func (q *Chains) ForgetChain(ctx context.Context, id jobs.TaskID) error {
	return q.c.Say("chain", q.c.Redis().SRem(ctx, keys.Hub("chains", ""), string(id)).Err())
}

// AskChain stores an order of a person about a chain, next or undo, and puts it on the list again.
// It returns false if that was ordered before.
func (q *Chains) AskChain(ctx context.Context, id jobs.TaskID, ask jobs.ChainOrders) (bool, error) {
	key := keys.Hub("chain:", string(id))
	var fresh *redis.BoolCmd
	_, err := q.c.Redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		if ask.Undo != "" {
			fresh = p.HSetNX(ctx, key, chainUndo, codec.OneLine(ask.Undo))
		} else {
			fresh = p.HSetNX(ctx, key, chainNext, codec.OneLine(ask.Next))
		}
		p.HDel(ctx, key, chainResult)
		p.SAdd(ctx, keys.Hub("chains", ""), string(id))
		return nil
	})
	if err != nil {
		return false, q.c.Say("chain", err)
	}
	return fresh.Val(), nil
}
