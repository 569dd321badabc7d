package nodes

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/keys"
)

// orderedHint is the text of a hint that there is another order about some node.
const orderedHint = "orders"

// Ordered says that there may be another order about a node: after a hint, when hints may have been
// lost, and once a minute.
func (q *Nodes) Ordered() <-chan struct{} { return q.ordered }

// order makes Ordered say so.
func (q *Nodes) order() {
	select {
	case q.ordered <- struct{}{}:
	default: // it does already
	}
}

// NodeOrder returns the last order about a node, as servers have written it; empty: none.
func (q *Nodes) NodeOrder(ctx context.Context, node string) (string, error) {
	text, err := q.c.Redis().HGet(ctx, keys.Hub("nodeorders", ""), node).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return text, q.c.Say("node order", err)
}

// NodeOrders returns the last orders about all nodes, as Redis has them: any text.
func (q *Nodes) NodeOrders(ctx context.Context) (map[string]string, error) {
	all, err := q.c.Redis().HGetAll(ctx, keys.Hub("nodeorders", "")).Result()
	return all, q.c.Say("node order", err)
}

// OrderNode stores what next makes of the last order about a node and of a number for the next one,
// and hints at it in the zones of the node. An empty text changes nothing.
func (q *Nodes) OrderNode(ctx context.Context, node string, zones []string,
	next func(last string, now int64) (string, error)) error {
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	key := keys.Hub("nodeorders", "")
	for again := true; again; {
		err = q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
			last, err := tx.HGet(ctx, key, node).Result()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			text, err := next(last, now.UnixMicro())
			if err != nil || text == "" {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.HSet(ctx, key, node, text)
				return nil
			})
			return err
		}, key)
		again = errors.Is(err, redis.TxFailedErr)
	}
	if err != nil {
		return q.c.Say("node order", err)
	}
	for _, zone := range zones { // a hint that gets lost costs a minute
		c, _, lost := q.c.At(ctx, zone)
		if lost == nil {
			lost = c.Publish(ctx, keys.Zone(zone, "wake", ""), orderedHint).Err()
		}
		err = errors.Join(err, lost)
	}
	return q.c.Say("node order", err)
}
