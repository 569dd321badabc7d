package read

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/keys"
)

// EventPage is a part of a zone's event stream, together with the extent of the stream at the same
// moment.
type EventPage struct {
	Events  []jobs.Happening
	Last    string // the last entry that was read; empty: none was
	Entries int64  // number of entries read; each may hold several events
	Stream  EventStream
}

// EventStream describes the extent of a stream in Redis.
type EventStream struct {
	First, Last string // its entries; empty: it has none
	Added       int64  // number of entries ever added; -1: this Redis does not count them
	Length      int64
}

// EventPage reads at most so many entries after a given one. It reads in one transaction, so that
// the caller knows whether entries before the page were trimmed.
func (q *Zones) EventPage(ctx context.Context, zone, after string, most int) (EventPage, error) {
	if after == "" {
		after = "0-0"
	}
	key := keys.Zone(zone, "events", "")
	var info *redis.XInfoStreamCmd
	var page *redis.XMessageSliceCmd
	var first, last *redis.XMessageSliceCmd
	_, err := q.c.Redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
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
		return out, q.c.Say("events", err)
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

// Events reads the events of a zone after the entry with the given id ("" is the beginning, "$" is
// now), at most limit entries. One call of a script makes one entry, so several events can have the
// same id. If there is no entry, Events waits so long for one; an empty answer is no error. The
// next call continues at last.
func (q *Zones) Events(ctx context.Context, zone, after string, limit int,
	wait time.Duration) (list []jobs.Happening, last string, err error) {
	if after == "" {
		after = "0"
	}
	key := keys.Zone(zone, "events", "")
	if after == "$" {
		// A fixed id, so that no entry is missed between two calls.
		newest, err := q.c.Redis().XRevRangeN(ctx, key, "+", "-", 1).Result()
		if err != nil {
			return nil, after, q.c.Say("events", err)
		}
		after = "0"
		if len(newest) > 0 {
			after = newest[0].ID
		}
	}
	block := wait
	if block <= 0 {
		block = -1
	}
	v, err := q.c.Redis().XRead(ctx, &redis.XReadArgs{Streams: []string{key, after},
		Count: int64(limit), Block: block}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, after, nil
	}
	if err != nil {
		return nil, after, q.c.Say("events", err)
	}
	for _, m := range v[0].Messages {
		list = append(list, forPeople(happenings(zone, m))...)
		after = m.ID
	}
	return list, after, nil
}

// forPeople leaves out the proofs of nodes, which nobody has checked: history does.
func forPeople(list []jobs.Happening) []jobs.Happening {
	for _, h := range list {
		if detail, ok := h.Detail.(map[string]any); ok {
			delete(detail, "proof")
		}
	}
	return list
}

// happenings reads an entry of the stream: the events of one call of a script, one a line.
func happenings(zone string, m redis.XMessage) []jobs.Happening {
	text, _ := m.Values["e"].(string)
	ms, _, _ := strings.Cut(m.ID, "-")
	n, _ := strconv.ParseInt(ms, 10, 64)
	var out []jobs.Happening
	for line := range strings.SplitSeq(text, "\n") {
		parts := strings.SplitN(line, " ", 3)
		if len(parts) < 3 {
			continue
		}
		h := jobs.Happening{ID: m.ID, Zone: zone, At: jobs.TimeOf(jobs.Micros(n * 1000)),
			Event: parts[0], Object: parts[1]}
		if parts[2] != "" && json.Unmarshal([]byte(parts[2]), &h.Detail) != nil {
			h.Detail = parts[2]
		}
		out = append(out, h)
	}
	return out
}
