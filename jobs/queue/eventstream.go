package queue

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// EventPage is a part of a zone's event stream, and what there was of the stream at
// the same moment.
type EventPage struct {
	Events  []jobs.Happening
	Last    string // entry that was read last; empty: none was
	Entries int64  // that were read; each may be several events
	Stream  EventStream
}

// EventStream is what Redis has of a stream.
type EventStream struct {
	First, Last string // its entries; empty: it has none
	Added       int64  // entries that it ever got; -1: this Redis does not count them
	Length      int64
}

// EventPage reads at most so many entries behind one. In one transaction, so that it is
// known what was trimmed before the page, and what was not.
func (q *Queue) EventPage(ctx context.Context, zone, after string, most int) (EventPage, error) {
	if after == "" {
		after = "0-0"
	}
	key := zoneKey(zone, "events", "")
	var info *redis.XInfoStreamCmd
	var page *redis.XMessageSliceCmd
	var first, last *redis.XMessageSliceCmd
	_, err := q.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		first = p.XRangeN(ctx, key, "-", "+", 1)
		last = p.XRevRangeN(ctx, key, "+", "-", 1)
		page = p.XRangeN(ctx, key, "("+after, "+", int64(most))
		info = p.XInfoStream(ctx, key)
		return nil
	})
	var out EventPage
	if err != nil && strings.Contains(err.Error(), "no such key") {
		return out, nil
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return out, q.say("events", err)
	}
	out.Stream = EventStream{Added: info.Val().EntriesAdded, Length: info.Val().Length}
	if out.Stream.Added < out.Stream.Length {
		out.Stream.Added = -1
	}
	if list := first.Val(); len(list) > 0 {
		out.Stream.First, out.Stream.Last = list[0].ID, last.Val()[0].ID
	}
	for _, m := range page.Val() {
		out.Events = append(out.Events, happenings(zone, m)...)
		out.Last = m.ID
	}
	out.Entries = int64(len(page.Val()))
	return out, nil
}

// TrimEvents forgets the entries of a zone's stream before one, or a few less.
func (q *Queue) TrimEvents(ctx context.Context, zone, before string) error {
	return q.say("events", q.rdb.XTrimMinIDApprox(ctx, zoneKey(zone, "events", ""), before, 0).Err())
}

// SaveEstimates keeps how long runbooks take, by the fields under which workers look
// for them, as JSON.
func (q *Queue) SaveEstimates(ctx context.Context, list map[string]string) error {
	if len(list) == 0 {
		return nil
	}
	return q.say("estimates", q.rdb.HSet(ctx, hubKey("estimates", ""), list).Err())
}

// ReplaceEstimates makes these the only ones.
func (q *Queue) ReplaceEstimates(ctx context.Context, list map[string]string) error {
	_, err := q.rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, hubKey("estimates", ""))
		if len(list) > 0 {
			p.HSet(ctx, hubKey("estimates", ""), list)
		}
		return nil
	})
	return q.say("estimates", err)
}
