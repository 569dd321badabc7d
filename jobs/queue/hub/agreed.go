package hub

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
	"muster/trust"
)

// Agreed copies what people have agreed, and restores it where Redis has lost it.
type Agreed struct {
	c         *queue.Conn
	timetable *Timetable
}

// NewAgreed returns the agreements behind a connection.
func NewAgreed(c *queue.Conn) *Agreed { return &Agreed{c, NewTimetable(c)} }

// With returns the agreements with a timetable that is signed.
func (q *Agreed) With(t *Timetable) *Agreed { return &Agreed{q.c, t} }

// AgreedState holds each part of the agreements in the hub. Of windows and schedules, which may be
// large, it has only the mark.
type AgreedState struct {
	Parts map[string]jobs.AgreedPart
	Lost  jobs.AgreedLost
}

// AgreedState reads the state in one call.
func (q *Agreed) AgreedState(ctx context.Context) (AgreedState, error) {
	out := AgreedState{Parts: map[string]jobs.AgreedPart{}}
	var version, lost *redis.StringCmd
	var stamps *redis.SliceCmd
	small := map[string]*redis.MapStringStringCmd{}
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		version = p.HGet(ctx, keys.Hub("windows", ""), "version")
		stamps = p.HMGet(ctx, keys.Hub("stamps", ""), jobs.AgreedSchedules, jobs.AgreedDrained)
		lost = p.HGet(ctx, keys.Hub("agreed", ""), "lost")
		for _, part := range []string{jobs.AgreedHalt, jobs.AgreedPauses} {
			small[part] = p.HGetAll(ctx, keys.Hub(part, ""))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return out, q.c.Say("agreed", err)
	}
	put := func(part, mark string) {
		n, _ := strconv.ParseInt(mark, 10, 64)
		out.Parts[part] = jobs.AgreedPart{Part: part, Mark: n}
	}
	put(jobs.AgreedWindows, version.Val())
	put(jobs.AgreedSchedules, codec.TextOf(stamps.Val(), 0))
	put(jobs.AgreedDrained, codec.TextOf(stamps.Val(), 1))
	for part, fields := range small {
		out.Parts[part] = jobs.AgreedPart{Part: part, Fields: fields.Val()}
	}
	if text := lost.Val(); text != "" {
		err = json.Unmarshal([]byte(text), &out.Lost)
		return out, q.c.Say("agreed", err)
	}
	return out, nil
}

// AgreedPart reads a whole part, with its mark.
func (q *Agreed) AgreedPart(ctx context.Context, part string) (jobs.AgreedPart, error) {
	out := jobs.AgreedPart{Part: part}
	var fields *redis.MapStringStringCmd
	var mark *redis.StringCmd
	_, err := q.c.Redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		fields = p.HGetAll(ctx, keys.Hub(part, ""))
		mark = p.HGet(ctx, keys.Hub("stamps", ""), part)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return out, q.c.Say("agreed", err)
	}
	out.Fields = fields.Val()
	out.Mark, _ = strconv.ParseInt(mark.Val(), 10, 64)
	if part == jobs.AgreedWindows {
		out.Mark, _ = strconv.ParseInt(out.Fields["version"], 10, 64)
		out.Fields = timetableOf(out.Fields) // the other fields are derived from these
	}
	return out, nil
}

// Believed reports whether servers have signed a part that Redis has, if they sign it at all.
// Others must not replace a copy that history keeps.
func (q *Agreed) Believed(part jobs.AgreedPart) bool {
	if part.Part != jobs.AgreedWindows {
		return true
	}
	_, doubt := q.timetable.notary.Believed(trust.CopyOf(part.Fields))
	return doubt == nil
}

// timetableOf returns the fields of the timetable that cannot be derived from others, and those
// that prove it.
func timetableOf(fields map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range trust.CopiedFields() {
		if text, is := fields[name]; is {
			out[name] = text
		}
	}
	return out
}

// LoseAgreed records in the hub, with an event, that Redis has forgotten what was agreed, unless
// that is recorded already.
func (q *Agreed) LoseAgreed(ctx context.Context, lost jobs.AgreedLost) error {
	text, err := json.Marshal(lost)
	if err != nil {
		return err
	}
	set, err := q.c.Redis().HSetNX(ctx, keys.Hub("agreed", ""), "lost", text).Result()
	if err != nil || !set {
		return q.c.Say("agreed", err)
	}
	return q.hubEvent(ctx, jobs.Alert{Event: "agreed-lost", Object: "agreed",
		Detail: map[string]any{"note": lost.Note}})
}

func (q *Agreed) hubEvent(ctx context.Context, e jobs.Alert) error {
	line, err := codec.EventLine(e)
	if err != nil {
		return err
	}
	return q.c.Say("events", q.c.Redis().XAdd(ctx, &redis.XAddArgs{Stream: keys.Hub("events", ""),
		MaxLen: codec.HubEventsMax, Approx: true, Values: []any{"e", line}}).Err())
}

// RestoreAgreed replaces parts in the hub by these, and ends their loss. All parts are restored or
// none. Schedules begin with their next tick: ticks that were missed are not made up for.
func (q *Agreed) RestoreAgreed(ctx context.Context, parts []jobs.AgreedPart, note string) error {
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	state, err := q.AgreedState(ctx)
	if err != nil {
		return err
	}
	line, err := codec.EventLine(jobs.Alert{Event: "agreed-restored", Object: "agreed",
		Detail: map[string]any{"note": codec.OneLine(note), "parts": len(parts)}})
	if err != nil {
		return err
	}
	var write []func(redis.Pipeliner)
	for _, p := range parts {
		mark := max(p.Mark, state.Parts[p.Part].Mark) + 1
		one, err := q.putBack(ctx, p, mark, now)
		if err != nil {
			return err
		}
		write = append(write, one)
	}
	_, err = q.c.Redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, one := range write {
			one(p)
		}
		p.HDel(ctx, keys.Hub("agreed", ""), "lost")
		p.XAdd(ctx, &redis.XAddArgs{Stream: keys.Hub("events", ""), MaxLen: codec.HubEventsMax,
			Approx: true,
			Values: []any{"e", line}})
		return nil
	})
	if err != nil {
		return q.c.Say("agreed", err)
	}
	_, err = q.timetable.PutExcerpts(ctx) // otherwise workers would get it only from a duty
	return err
}

// putBack returns the function that writes one part.
func (q *Agreed) putBack(ctx context.Context, part jobs.AgreedPart, mark int64, now time.Time) (
	func(redis.Pipeliner), error) {
	key, fields, ticks := keys.Hub(part.Part, ""), map[string]string{}, map[string]string{}
	for name, text := range part.Fields {
		fields[name] = text
	}
	switch part.Part {
	case jobs.AgreedWindows:
		var err error
		if fields, err = q.timetable.restored(fields, mark); err != nil {
			return nil, err
		}
	case jobs.AgreedSchedules:
		for name := range fields {
			text, err := json.Marshal(jobs.Ticking{Last: jobs.Time{Time: now}})
			if err != nil {
				return nil, err
			}
			ticks[name] = string(text)
		}
	}
	return func(p redis.Pipeliner) {
		if p.Del(ctx, key); len(fields) > 0 {
			p.HSet(ctx, key, fields)
		}
		switch part.Part {
		case jobs.AgreedSchedules:
			if p.Del(ctx, keys.Hub("ticks", "")); len(ticks) > 0 {
				p.HSet(ctx, keys.Hub("ticks", ""), ticks)
			}
			fallthrough
		case jobs.AgreedDrained:
			p.HSet(ctx, keys.Hub("stamps", ""), part.Part, mark)
		}
	}, nil
}
