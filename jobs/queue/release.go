package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// ErrHeld says that a host is locked for a job that has not ended.
var ErrHeld = errors.New("it has not ended")

// ReleaseHost gives a host back that is locked for a job which has ended, or of whose task Redis
// knows nothing any more, and of which something might be at work there. note says who looked, and
// why it is well. The lock is that which was read: a copy of the call that comes late meets
// another one, maybe.
func (q *Queue) ReleaseHost(ctx context.Context, zone, host, note string) (jobs.Released, error) {
	out := jobs.Released{Host: host, Zone: zone, Already: true}
	text, err := q.rdb.HGet(ctx, zoneKey(zone, "locks", ""), host).Result()
	words := strings.Fields(text)
	switch {
	case errors.Is(err, redis.Nil), err == nil && len(words) != 3:
		return out, nil
	case err != nil:
		return out, q.say("release", err)
	}
	c, err := q.control(ctx, zone, turn{verb: "release", object: host, note: note, number: words[1]})
	if err != nil {
		return out, err
	}
	switch c.status {
	case "busy":
		id, state, _ := strings.Cut(c.before, " ")
		out.Job = jobs.ID(id)
		return out, fmt.Errorf("host %s is locked for job %s, which is %s: %w", host, id, state, ErrHeld)
	case "other":
		return out, fmt.Errorf("host %s was taken by job %s meanwhile: %w", host, c.before, ErrStale)
	case "ok":
		until, _ := jobs.ParseMicros(words[0])
		out.Already, out.Job, out.Until = false, jobs.ID(c.before), jobs.TimeOf(until)
	}
	return out, nil
}
