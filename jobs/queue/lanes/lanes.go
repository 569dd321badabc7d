// Package lanes keeps which tasks are in which lane, in the hub.
//
// Floor 4: may import the connection, jobs/lane and all below it.
package lanes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/lane"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Lanes keeps lanes: of each its tasks, in their order.
type Lanes struct{ c *queue.Conn }

// New returns the lanes behind a connection.
func New(c *queue.Conn) *Lanes { return &Lanes{c} }

// entriesMax bounds the tasks of a lane. A lane that is longer is stuck.
const entriesMax = 1000

// ErrFull refuses a task of a lane that has too many.
var ErrFull = fmt.Errorf("the lane has %d tasks already: see which is in front, and cancel those "+
	"that nobody needs", entriesMax)

// EnterLane gives a task its place in a lane. A task that has one keeps it; fresh reports that it
// had none.
func (q *Lanes) EnterLane(ctx context.Context, key string, e lane.Entry) (fresh bool,
	err error) {
	err = q.ChangeLane(ctx, key, func(list []lane.Entry) ([]lane.Entry, error) {
		fresh = !slices.ContainsFunc(list, func(o lane.Entry) bool { return o.Task == e.Task })
		if !fresh {
			return list, nil
		}
		if len(list) >= entriesMax {
			return nil, ErrFull
		}
		if n := len(list); n > 0 { // the clocks of servers differ, and the order is that of Redis
			e.Since = max(e.Since, list[n-1].Since+1)
		}
		return append(list, e), nil
	})
	return fresh, err
}

// PutInLane notes that all jobs of a task are in the queue.
func (q *Lanes) PutInLane(ctx context.Context, key string, id jobs.TaskID) error {
	return q.ChangeLane(ctx, key, func(list []lane.Entry) ([]lane.Entry, error) {
		i := slices.IndexFunc(list, func(e lane.Entry) bool { return e.Task == id })
		if i < 0 {
			return nil, fmt.Errorf("task %s has lost its place in lane %s: submit it again with its id",
				id, key)
		}
		list[i].Put = true
		return list, nil
	})
}

// LaneOf returns the lane in which a task is, and its place; empty: it is in none.
func (q *Lanes) LaneOf(ctx context.Context, id jobs.TaskID) (key string, e lane.Entry,
	err error) {
	all, err := q.LaneKeys(ctx)
	if err != nil || len(all) == 0 {
		return "", e, err
	}
	found := make([]*redis.StringCmd, len(all))
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, one := range all {
			found[i] = p.HGet(ctx, keys.Hub("lane:", one), string(id))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", e, q.c.Say("lanes", err)
	}
	for i, one := range all {
		if text, err := found[i].Bytes(); err == nil && json.Unmarshal(text, &e) == nil {
			return one, e, nil
		}
	}
	return "", lane.Entry{}, nil
}

// LeaveLane takes a task out of its lane.
func (q *Lanes) LeaveLane(ctx context.Context, key string, id jobs.TaskID) error {
	return q.ChangeLane(ctx, key, func(list []lane.Entry) ([]lane.Entry, error) {
		return slices.DeleteFunc(list, func(e lane.Entry) bool { return e.Task == id }), nil
	})
}

// LaneKeys returns the keys of all lanes with a task, sorted.
func (q *Lanes) LaneKeys(ctx context.Context) ([]string, error) {
	list, err := q.c.Redis().SMembers(ctx, keys.Hub("lanes", "")).Result()
	slices.Sort(list)
	return list, q.c.Say("lanes", err)
}

// Lane returns the tasks of a lane in their order.
func (q *Lanes) Lane(ctx context.Context, key string) ([]lane.Entry, error) {
	list, err := read(ctx, q.c.Redis(), key)
	return list, q.c.Say("lanes", err)
}

// reader is a connection, or a transaction on it.
type reader interface {
	HGetAll(ctx context.Context, key string) *redis.MapStringStringCmd
}

// read leaves out what is not of the form that servers write.
func read(ctx context.Context, r reader, key string) ([]lane.Entry, error) {
	fields, err := r.HGetAll(ctx, keys.Hub("lane:", key)).Result()
	if err != nil {
		return nil, err
	}
	var list []lane.Entry
	for id, text := range fields {
		var e lane.Entry
		if json.Unmarshal([]byte(text), &e) == nil && string(e.Task) == id && e.Most > 0 {
			list = append(list, e)
		}
	}
	lane.Sort(list)
	return list, nil
}

// ChangeLane replaces the tasks of a lane by those that a function makes of them. It calls the
// function again if somebody else has changed them meanwhile, so that no two servers decide by the
// same state.
func (q *Lanes) ChangeLane(ctx context.Context, key string,
	change func(list []lane.Entry) ([]lane.Entry, error)) error {
	for {
		var own error // not one of Redis
		err := q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
			was, err := read(ctx, tx, key)
			if err != nil {
				return err
			}
			var list []lane.Entry
			if list, own = change(slices.Clone(was)); own != nil {
				return nil
			}
			return q.write(ctx, tx, key, was, list)
		}, keys.Hub("lane:", key))
		if own != nil {
			return own
		}
		if !errors.Is(err, redis.TxFailedErr) {
			return q.c.Say("lanes", err)
		}
	}
}

// write writes what has changed of a lane.
func (q *Lanes) write(ctx context.Context, tx *redis.Tx, key string, was, list []lane.Entry) error {
	old := map[jobs.TaskID]lane.Entry{}
	for _, e := range was {
		old[e.Task] = e
	}
	var set []any
	for _, e := range list {
		before, there := old[e.Task]
		delete(old, e.Task)
		if there && before == e {
			continue
		}
		text, err := json.Marshal(e)
		if err != nil {
			return err
		}
		set = append(set, string(e.Task), text)
	}
	var gone []string
	for _, id := range slices.Sorted(maps.Keys(old)) {
		gone = append(gone, string(id))
	}
	if len(set) == 0 && len(gone) == 0 && len(list) > 0 {
		return nil
	}
	_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
		name, index := keys.Hub("lane:", key), keys.Hub("lanes", "")
		if len(gone) > 0 {
			p.HDel(ctx, name, gone...)
		}
		if len(set) > 0 {
			p.HSet(ctx, name, set...)
			p.Expire(ctx, name, codec.TaskKeep)
		}
		if len(list) > 0 {
			p.SAdd(ctx, index, key)
		} else {
			p.SRem(ctx, index, key)
		}
		return nil
	})
	return err
}
