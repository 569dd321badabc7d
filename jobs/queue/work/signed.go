package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Signed reads what servers and people have signed.
type Signed struct{ *queue.Conn }

// NewSigned returns the signed orders behind a connection.
func NewSigned(c *queue.Conn) Signed { return Signed{c} }

// SignedOrder returns the bytes of the order of a task and its signatures; none: it has none.
func (q Signed) SignedOrder(ctx context.Context, zone string, id jobs.TaskID) (order []byte,
	signatures []string, err error) {
	v, err := q.Redis().HMGet(ctx, keys.Zone(zone, "task:", string(id)), codec.FieldOrder,
		codec.FieldSignatures).Result()
	if err != nil {
		return nil, nil, q.Say("order", err)
	}
	if v[0] == nil || v[1] == nil {
		return nil, nil, nil
	}
	if json.Unmarshal([]byte(codec.TextOf(v, 1)), &signatures) != nil {
		signatures = nil // a text that nobody can read proves nothing
	}
	return []byte(codec.TextOf(v, 0)), signatures, nil
}

// Share returns the lines of a share of the hosts of an order; empty: there are none.
func (q Signed) Share(ctx context.Context, zone string, id jobs.TaskID, share int) (string, error) {
	lines, err := q.Redis().HGet(ctx, keys.Zone(zone, "task:", string(id)),
		codec.FieldShare+strconv.Itoa(share)).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	if err != nil {
		return "", q.Say(fmt.Sprintf("share %d of an order", share), err)
	}
	return lines, nil
}
