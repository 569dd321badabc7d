package read

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Outputs reads the output of hosts.
type Outputs struct{ c *queue.Conn }

// NewOutputs returns the outputs behind a connection.
func NewOutputs(c *queue.Conn) *Outputs { return &Outputs{c} }

// Output returns the output of a job's host, attempt after attempt; for a running attempt, the part
// that was received so far.
func (q *Outputs) Output(ctx context.Context, id jobs.ID) (jobs.Output, error) {
	zone, err := q.c.Places.ZoneOf(ctx, id)
	if err != nil {
		return nil, err
	}
	all, err := q.Outputs(ctx, zone, []jobs.ID{id})
	return all[id], err
}

// Outputs returns the output of the hosts of several jobs of one zone.
func (q *Outputs) Outputs(ctx context.Context, zone string, ids []jobs.ID) (
	map[jobs.ID]jobs.Output, error) {
	fresh := make(map[jobs.ID]*Heard, len(ids))
	for _, id := range ids {
		fresh[id] = &Heard{}
	}
	return q.Listen(ctx, zone, fresh)
}

// Listen returns the output of jobs of one zone since the last call, and moves their positions
// forward. Jobs without new output are not in the answer.
func (q *Outputs) Listen(ctx context.Context, zone string, list map[jobs.ID]*Heard) (
	map[jobs.ID]jobs.Output, error) {
	out := make(map[jobs.ID]jobs.Output, len(list))
	err := q.listen(ctx, zone, list, func(id jobs.ID, entries []redis.XMessage) {
		if news := list[id].read(entries); len(news) > 0 {
			out[id] = news
		}
	})
	if err != nil || len(out) == 0 {
		return nil, err
	}
	return out, nil
}

// listen passes the entries of jobs of one zone behind their positions to f.
func (q *Outputs) listen(ctx context.Context, zone string, list map[jobs.ID]*Heard,
	f func(jobs.ID, []redis.XMessage)) error {
	if len(list) == 0 {
		return nil
	}
	prefix := keys.Zone(zone, "out:", "")
	streams := make([]string, 2*len(list))
	i := 0
	for id, h := range list {
		streams[i], streams[len(list)+i] = prefix+string(id), h.place()
		i++
	}
	found, err := q.c.Redis().XRead(ctx, &redis.XReadArgs{Streams: streams, Block: -1}).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return q.c.Say("output", err)
	}
	for _, s := range found {
		f(jobs.ID(strings.TrimPrefix(s.Stream, prefix)), s.Messages)
	}
	return nil
}
