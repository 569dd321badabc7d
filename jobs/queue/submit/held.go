package submit

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// HeldKeep is the time for which a task waits for signatures.
const HeldKeep = codec.HeldKeep

func signingKey() string { return keys.Hub("signing", "") }

// PutHeld puts a task with its hosts, by zone, into the queue, and does not commit it: no job of it
// runs before CommitHeld, and it expires after a day. A retry cannot be held, because other servers
// complete retries.
func (q *Submits) PutHeld(ctx context.Context, t jobs.Task, hosts map[string][]string) error {
	if t.Spec.RetryOf != "" {
		return errors.New("a retry cannot wait for signatures")
	}
	if err := q.put(ctx, t, hosts, nil); err != nil {
		return err
	}
	old := jobs.MicrosOf(t.Spec.Created.Time().Add(-HeldKeep))
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAddNX(ctx, signingKey(), redis.Z{Score: float64(t.Spec.Created), Member: string(t.ID)})
		p.ZRemRangeByScore(ctx, signingKey(), "-inf", "("+old.String())
		return nil
	})
	return q.c.Say("hold", err)
}

// PutOnly puts a task with its hosts, by zone, into the queue, and does not commit it: no job of it
// runs before CommitPut, and it expires after a day. It is not on the list of those that wait for
// signatures.
func (q *Submits) PutOnly(ctx context.Context, t jobs.Task, hosts map[string][]string) error {
	if t.Spec.RetryOf != "" {
		return errors.New("a retry cannot wait for its turn in a lane")
	}
	return q.put(ctx, t, hosts, nil)
}

// CommitPut commits a task that was put, in all its zones. Committing twice does no harm.
func (q *Submits) CommitPut(ctx context.Context, t jobs.Task) error {
	zones, err := q.c.Places.TaskZones(ctx, t.ID)
	if err != nil {
		return err
	}
	return q.commitWhole(ctx, t, zones)
}

// CommitHeld commits a task that was held, in all its zones. Committing twice does no harm.
func (q *Submits) CommitHeld(ctx context.Context, t jobs.Task) error {
	if err := q.CommitPut(ctx, t); err != nil {
		return err
	}
	return q.DropHeld(ctx, t.ID)
}

// DropHeld takes a task from the list of those that wait for signatures.
func (q *Submits) DropHeld(ctx context.Context, id jobs.TaskID) error {
	return q.c.Say("hold", q.c.Redis().ZRem(ctx, signingKey(), string(id)).Err())
}

// HeldTasks returns the tasks that wait for signatures, the newest first. Some of them may have
// expired, or were cancelled.
func (q *Submits) HeldTasks(ctx context.Context, now time.Time) ([]jobs.TaskID, error) {
	list, err := q.c.Redis().ZRangeArgs(ctx, redis.ZRangeArgs{Key: signingKey(), ByScore: true,
		Rev: true, Start: "+inf", Stop: jobs.MicrosOf(now.Add(-HeldKeep)).String()}).Result()
	if err != nil {
		return nil, q.c.Say("hold", err)
	}
	ids := make([]jobs.TaskID, 0, len(list))
	for _, id := range list {
		ids = append(ids, jobs.TaskID(id))
	}
	return ids, nil
}

// IsHeld reports whether a task is on the list of those that wait for signatures.
func (q *Submits) IsHeld(ctx context.Context, id jobs.TaskID) (bool, error) {
	err := q.c.Redis().ZScore(ctx, signingKey(), string(id)).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, q.c.Say("hold", err)
}

// OrderIn returns the signed order of a task in a zone. The error wraps queue.ErrNotFound if there
// is none.
func (q *Signed) OrderIn(ctx context.Context, zone string, id jobs.TaskID) (Order, error) {
	o, err := readOrder(ctx, q.c.Redis(), keys.Zone(zone, "task:", string(id)), id)
	if err != nil {
		return Order{}, q.c.Say("order", err)
	}
	if o == nil {
		return Order{}, queue.ErrNotFound
	}
	return *o, nil
}

// SharesIn returns the first shares of the hosts of an order in a zone; one that is not there is
// empty.
func (q *Signed) SharesIn(ctx context.Context, zone string, id jobs.TaskID, n int) ([]string,
	error) {
	shares := make([]string, 0, n)
	for i := range n {
		text, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "task:", string(id)),
			codec.FieldShare+strconv.Itoa(i)).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, q.c.Say("order", err)
		}
		shares = append(shares, text)
	}
	return shares, nil
}

// Endorse replaces the signatures of an order in a zone by those that a function makes of them. It
// calls the function again if somebody else has changed them meanwhile. The error wraps
// queue.ErrStale if the zone has another order now, or none.
func (q *Signed) Endorse(ctx context.Context, zone string, o Order,
	change func(signatures []string) ([]string, error)) error {
	key := keys.Zone(zone, "task:", string(o.Task))
	for {
		var own error // not one of Redis
		err := q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
			now, err := readOrder(ctx, tx, key, o.Task)
			if err != nil {
				return err
			}
			var list []string
			if now == nil || string(now.Bytes) != string(o.Bytes) {
				own = queue.ErrStale
			} else {
				list, own = change(now.Signatures)
			}
			text, err := codec.Signatures(list)
			if own != nil || err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.HSet(ctx, key, codec.FieldSignatures, text)
				return nil
			})
			return err
		}, key)
		if own != nil {
			return own
		}
		if !errors.Is(err, redis.TxFailedErr) {
			return q.c.Say("order", err)
		}
	}
}
