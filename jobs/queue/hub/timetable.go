package hub

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
	"muster/trust"
	"muster/windows"
)

// Timetable stores the agreements about times: windows, freezes, approvals.
type Timetable struct {
	c      *queue.Conn
	notary *trust.Notary // nil: it is not signed
}

// NewTimetable returns the timetable behind a connection, without statements.
func NewTimetable(c *queue.Conn) *Timetable { return &Timetable{c: c} }

// Timetable reads all agreements about times: windows, freezes, approvals.
func (q *Timetable) Timetable(ctx context.Context) (windows.Timetable, error) {
	k, err := q.Kept(ctx, trust.TimesAsked{Table: true})
	if err != nil {
		return windows.Timetable{}, err
	}
	t, err := k.Timetable()
	return t, q.c.Say("windows", err)
}

// TimetableMark returns the mark of the timetable, for callers that have read it: one call that
// costs next to nothing.
func (q *Timetable) TimetableMark(ctx context.Context) (string, error) {
	list, err := q.c.Redis().HMGet(ctx, keys.Hub("windows", ""), "version", "stamp").Result()
	if err != nil {
		return "", q.c.Say("windows", err)
	}
	return markOf(list), nil
}

// markOf returns the mark of the timetable whose version and stamp are the first of these fields;
// empty if there never was one. Redis may lose its last writes and give their version to another
// timetable: the stamp, a random text, tells the two apart. A timetable of a muster that does not
// know stamps has none, nor has one that was restored.
func markOf(fields []any) string {
	version, is := fields[0].(string)
	if !is {
		return ""
	}
	stamp, _ := fields[1].(string)
	return version + "." + stamp
}

// SetTimetable replaces the timetable if t was made from the version in force, and gives it the
// next version. The event goes into the stream of the hub. ErrChanged: the version was another, and
// nothing was changed.
func (q *Timetable) SetTimetable(ctx context.Context, t windows.Timetable, e jobs.Alert) (int64,
	error) {
	change, err := q.PrepareTimetable(t, e)
	if err != nil {
		return 0, err
	}
	return t.Version + 1, q.c.Say("windows", Make(ctx, q.c, change))
}

// PrepareTimetable returns the change that SetTimetable makes.
func (q *Timetable) PrepareTimetable(t windows.Timetable, e jobs.Alert) (Prepared, error) {
	key, before := keys.Hub("windows", ""), t.Version
	t.Version++
	text, err := json.Marshal(t)
	if err != nil {
		return Prepared{}, err
	}
	line, err := codec.EventLine(e)
	if err != nil {
		return Prepared{}, err
	}
	excerpts, stamp := excerptsOf(t), rand.Text()[:8]
	excerpts.replaces = true
	var older []string
	var stated trust.Times
	check := func(ctx context.Context, r redis.Cmdable) error {
		list, err := r.HMGet(ctx, key, "version", "stamp").Result()
		if err != nil {
			return err
		}
		number, _ := list[0].(string)
		is, _ := strconv.ParseInt(number, 10, 64) // none, or no number: 0
		if is != before || t.Mark != "" && markOf(list) != t.Mark {
			return queue.ErrChanged
		}
		if older, err = r.HKeys(ctx, key).Result(); err != nil {
			return err
		}
		stated = q.notary.Next(t.Version, stamp)
		excerpts.proof, err = q.notary.Prove(stated, text, excerpts.texts)
		return err
	}
	return Prepared{Keys: []string{key}, Check: check, Write: func(ctx context.Context,
		p redis.Pipeliner) {
		p.HSet(ctx, key, "version", strconv.FormatInt(t.Version, 10), "stamp", stamp, "table", text)
		excerpts.put(ctx, p, older)
		p.XAdd(ctx, &redis.XAddArgs{Stream: keys.Hub("events", ""), MaxLen: codec.HubEventsMax,
			Approx: true, Values: []any{"e", line}})
	}, Done: func() { q.notary.Remember(stated) }}, nil
}

// Appoint gives jobs of a task in one zone new appointments, if they still have the appointments
// that are named. It returns how many it moved.
func (q *Timetable) Appoint(ctx context.Context, zone string, id jobs.TaskID,
	moves []jobs.Move) (int,
	error) {
	all := 0
	for chunk := range slices.Chunk(moves, codec.HostsMax) {
		r, err := q.c.Script(ctx, queue.ScriptAppoint, zone, codec.AppointArgs(id, chunk)...)
		if err != nil {
			return all, err
		}
		status, n := r.Text(), r.Int()
		if r.Err != nil {
			return all, r.Err
		}
		if status != "ok" {
			return all, fmt.Errorf("zone %s, task %s: %w", zone, id, queue.ErrNotFound)
		}
		all += n
	}
	return all, nil
}

// MovedFor returns the version of the timetable for which the appointments of waiting jobs were
// last adjusted.
func (q *Timetable) MovedFor(ctx context.Context) (int64, error) {
	n, err := q.c.Redis().HGet(ctx, keys.Hub("windows", ""), "moved").Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, q.c.Say("windows", err)
}

// SetMovedFor stores the version for which they were adjusted.
func (q *Timetable) SetMovedFor(ctx context.Context, version int64) error {
	return q.c.Say("windows", q.c.Redis().HSet(ctx, keys.Hub("windows", ""), "moved",
		strconv.FormatInt(version, 10)).Err())
}
