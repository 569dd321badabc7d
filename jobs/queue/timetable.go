package queue

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/windows"
)

// ErrChanged is wrapped when somebody else has changed the timetable meanwhile:
// read it again.
var ErrChanged = errors.New("it was changed by somebody else meanwhile")

// Timetable reads all that is agreed about times: windows, freezes, approvals.
func (q *Queue) Timetable(ctx context.Context) (windows.Timetable, error) {
	var t windows.Timetable
	text, err := q.rdb.HGet(ctx, hubKey("windows", ""), "table").Bytes()
	if errors.Is(err, redis.Nil) {
		return t, nil
	}
	if err != nil {
		return t, q.say("windows", err)
	}
	return t, q.say("windows", json.Unmarshal(text, &t))
}

// TimetableVersion is that of the timetable, for those who have read it: one call
// that costs next to nothing.
func (q *Queue) TimetableVersion(ctx context.Context) (int64, error) {
	n, err := q.rdb.HGet(ctx, hubKey("windows", ""), "version").Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, q.say("windows", err)
}

// SetTimetable replaces the timetable, if it is still the version that t is made
// of, and gives it the next one. event and object become an entry of the hub's
// stream, with what is said of it. ErrChanged: nothing was changed.
func (q *Queue) SetTimetable(ctx context.Context, t windows.Timetable, e HubEvent) (int64, error) {
	key, before := hubKey("windows", ""), t.Version
	t.Version++
	text, err := json.Marshal(t)
	if err != nil {
		return 0, err
	}
	line, err := e.line()
	if err != nil {
		return 0, err
	}
	err = q.rdb.Watch(ctx, func(tx *redis.Tx) error {
		is, err := tx.HGet(ctx, key, "version").Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if is != before {
			return redis.TxFailedErr
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, key, "version", strconv.FormatInt(t.Version, 10), "table", text)
			p.XAdd(ctx, &redis.XAddArgs{Stream: hubKey("events", ""), MaxLen: hubEventsMax, Approx: true,
				Values: []any{"e", line}})
			return nil
		})
		return err
	}, key)
	if errors.Is(err, redis.TxFailedErr) {
		return 0, q.say("windows", ErrChanged)
	}
	return t.Version, q.say("windows", err)
}

// hubEventsMax bounds the stream of the hub, in entries: what people order there
// is little, and is to be found for years.
const hubEventsMax = 100_000

// HubZone is the zone in whose name the events of the hub come.
const HubZone = hub

// HubEvent is something that happened and belongs to no zone. It comes with the
// events of zones, as those of a zone "hub".
type HubEvent struct {
	Event  string         // one word
	Object string         // what it is about, without blanks
	Detail map[string]any // who, why, what
}

func (e HubEvent) line() (string, error) {
	detail, err := json.Marshal(e.Detail)
	return e.Event + " " + e.Object + " " + string(detail), err
}
