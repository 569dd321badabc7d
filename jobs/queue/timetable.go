package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
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
func (q *Queue) SetTimetable(ctx context.Context, t windows.Timetable, e jobs.Alert) (int64, error) {
	key, before := hubKey("windows", ""), t.Version
	t.Version++
	text, err := json.Marshal(t)
	if err != nil {
		return 0, err
	}
	line, err := eventLine(e)
	if err != nil {
		return 0, err
	}
	excerpts := excerptsOf(t)
	// Redis watches whole keys: what SetMovedFor notes beside the table breaks the
	// transaction, too, and says nothing against it. The version alone decides.
	for again := true; again; {
		err = q.rdb.Watch(ctx, func(tx *redis.Tx) error {
			is, err := tx.HGet(ctx, key, "version").Int64()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			if is != before {
				return ErrChanged
			}
			older, err := tx.HKeys(ctx, key).Result()
			if err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.HSet(ctx, key, "version", strconv.FormatInt(t.Version, 10), "table", text)
				excerpts.put(ctx, p, older)
				p.XAdd(ctx, &redis.XAddArgs{Stream: hubKey("events", ""), MaxLen: hubEventsMax, Approx: true,
					Values: []any{"e", line}})
				return nil
			})
			return err
		}, key)
		again = errors.Is(err, redis.TxFailedErr)
	}
	return t.Version, q.say("windows", err)
}

// hubEventsMax bounds the stream of the hub, in entries: what people order there
// is little, and is to be found for years.
const hubEventsMax = 100_000

// eventLine returns an event as the streams have it: one word, an object without blanks, and
// the details as JSON.
func eventLine(e jobs.Alert) (string, error) {
	detail, err := json.Marshal(e.Detail)
	return e.Event + " " + e.Object + " " + string(detail), err
}

// Alert tells of something that somebody should look at, in the events of a zone.
func (q *Queue) Alert(ctx context.Context, zone string, a jobs.Alert) error {
	line, err := eventLine(a)
	if err != nil {
		return err
	}
	return q.say("alert", q.rdb.XAdd(ctx, &redis.XAddArgs{Stream: zoneKey(zone, "events", ""),
		MaxLen: zoneEventsMax, Approx: true, Values: []any{"e", line}}).Err())
}

// zoneEventsMax bounds the stream of a zone, as in prelude.lua.
const zoneEventsMax = 1_000_000

// Estimate reads how long a runbook takes, by the field that [jobs.EstimateField]
// makes. It is false if that is not known.
func (q *Queue) Estimate(ctx context.Context, field string) (e jobs.Estimate, ok bool, err error) {
	text, err := q.rdb.HGet(ctx, hubKey("estimates", ""), field).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return e, false, nil
	case err != nil:
		return e, false, q.say("estimates", err)
	}
	err = json.Unmarshal(text, &e)
	return e, err == nil, q.say("estimates", err)
}

// Estimates reads many. What is not known is not in it.
func (q *Queue) Estimates(ctx context.Context, fields []string) (map[string]jobs.Estimate, error) {
	all := make(map[string]jobs.Estimate, len(fields))
	for chunk := range slices.Chunk(fields, chunkMax) {
		list, err := q.rdb.HMGet(ctx, hubKey("estimates", ""), chunk...).Result()
		if err != nil {
			return nil, q.say("estimates", err)
		}
		for i, text := range list {
			var e jobs.Estimate
			if text, ok := text.(string); ok && json.Unmarshal([]byte(text), &e) == nil {
				all[chunk[i]] = e
			}
		}
	}
	return all, nil
}

// Appoint gives jobs of a task in one zone new appointments, if they have the ones still
// that are named. It tells how many it moved.
func (q *Queue) Appoint(ctx context.Context, zone string, id jobs.TaskID, moves []jobs.Move) (int,
	error) {
	all := 0
	for chunk := range slices.Chunk(moves, hostsMax) {
		r, err := q.script(ctx, scriptAppoint, zone, appointArgs(id, chunk)...)
		if err != nil {
			return all, err
		}
		status, n := r.text(), r.int()
		if r.err != nil {
			return all, r.err
		}
		if status != "ok" {
			return all, fmt.Errorf("zone %s, task %s: %w", zone, id, ErrNotFound)
		}
		all += n
	}
	return all, nil
}

func appointArgs(id jobs.TaskID, moves []jobs.Move) []any {
	args := []any{string(id)}
	for _, m := range moves {
		args = append(args, m.Host, m.Was.String(), m.To.String())
	}
	return args
}

// MovedFor is the version of the timetable by which the appointments of waiting jobs were
// looked at last.
func (q *Queue) MovedFor(ctx context.Context) (int64, error) {
	n, err := q.rdb.HGet(ctx, hubKey("windows", ""), "moved").Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, q.say("windows", err)
}

// SetMovedFor notes that they were.
func (q *Queue) SetMovedFor(ctx context.Context, version int64) error {
	return q.say("windows", q.rdb.HSet(ctx, hubKey("windows", ""), "moved",
		strconv.FormatInt(version, 10)).Err())
}
