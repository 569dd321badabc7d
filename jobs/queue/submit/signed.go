package submit

import (
	"context"
	"encoding/json"
	"reflect"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Signed keeps the signed orders of open tasks.
type Signed struct{ c *queue.Conn }

// NewSigned returns the signed orders behind a connection.
func NewSigned(c *queue.Conn) *Signed { return &Signed{c} }

// An Order is the signed order of a task in a zone.
type Order struct {
	Task       jobs.TaskID
	Bytes      []byte
	Signatures []string
}

// EachOrder calls a function with the order of each open task of a zone. If the function returns
// another order, it replaces the first one.
func (q *Signed) EachOrder(ctx context.Context, zone string, do func(Order) (*Order, error)) error {
	for from := int64(0); ; from += codec.ChunkMax {
		ids, err := q.c.Redis().ZRange(ctx, keys.Zone(zone, "open", ""), from,
			from+codec.ChunkMax-1).Result()
		if err != nil || len(ids) == 0 {
			return q.c.Say("orders", err)
		}
		for _, id := range ids {
			if err := q.orderOf(ctx, zone, jobs.TaskID(id), do); err != nil {
				return err
			}
		}
	}
}

// Order returns the order of a task and its signatures, of the first zone that has them; none:
// Redis has none.
func (q *Signed) Order(ctx context.Context, id jobs.TaskID) (order []byte, signatures []string,
	err error) {
	zones, err := q.c.Places.TaskZones(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	for _, zone := range zones {
		o, err := readOrder(ctx, q.c.Redis(), keys.Zone(zone, "task:", string(id)), id)
		if err != nil {
			return nil, nil, q.c.Say("order", err)
		}
		if o != nil {
			return o.Bytes, o.Signatures, nil
		}
	}
	return nil, nil, nil
}

// readOrder reads the order of a task at the key of a zone's part. It returns nil if there is none,
// or if nobody can read its signatures: then they prove nothing.
func readOrder(ctx context.Context, from hashReader, key string, id jobs.TaskID) (*Order, error) {
	v, err := from.HMGet(ctx, key, codec.FieldOrder, codec.FieldSignatures).Result()
	if err != nil || v[0] == nil || v[1] == nil {
		return nil, err
	}
	o := &Order{Task: id, Bytes: []byte(codec.TextOf(v, 0))}
	if json.Unmarshal([]byte(codec.TextOf(v, 1)), &o.Signatures) != nil {
		return nil, nil
	}
	return o, nil
}

func (q *Signed) orderOf(ctx context.Context, zone string, id jobs.TaskID,
	do func(Order) (*Order, error)) error {
	key := keys.Zone(zone, "task:", string(id))
	o, err := readOrder(ctx, q.c.Redis(), key, id)
	if err != nil || o == nil {
		return q.c.Say("orders", err)
	}
	other, err := do(*o)
	if err != nil || other == nil {
		return err
	}
	signatures, err := codec.Signatures(other.Signatures)
	if err != nil {
		return err
	}
	// The task may be forgotten meanwhile, or somebody signs it: then it stays as it is.
	err = q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
		now, err := readOrder(ctx, tx, key, id)
		if err != nil || !reflect.DeepEqual(now, o) {
			return err
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, key, codec.FieldOrder, other.Bytes, codec.FieldSignatures, signatures)
			return nil
		})
		return err
	}, key)
	return q.c.Say("orders", err)
}
