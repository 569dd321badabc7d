package orders

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Exclusion clears groups, thaws zones and releases hosts after a person has looked at them.
type Exclusion struct{ c *queue.Conn }

// NewExclusion returns the exclusion behind a connection.
func NewExclusion(c *queue.Conn) *Exclusion { return &Exclusion{c} }

// ClearGroup lets jobs disturb the members of a frozen group again. note says who looked at them,
// and why that is safe.
func (q *Exclusion) ClearGroup(ctx context.Context, group, note string) (jobs.Cleared, error) {
	out := jobs.Cleared{Group: group, Already: true}
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return out, err
	}
	known := false
	for _, zone := range zones {
		v, err := q.c.Redis().HGetAll(ctx, keys.Zone(zone, "sem:", codec.GroupPrefix+group)).Result()
		if err != nil {
			return out, q.c.Say("clear", err)
		}
		if len(v) == 0 {
			continue
		}
		known = true
		g := codec.ReadGroup(zone, group, codec.Semaphore{Holders: v})
		out.Zone, out.Holder = zone, g.Holder
		if err := q.stampClear(ctx, zone, group); err != nil {
			return out, err // first, because a job that the clear wakes looks for it
		}
		if frozen, ok := v[codec.FrozenField]; ok {
			if out, err = q.thawGroup(ctx, out, frozen, note); err != nil {
				return out, err
			}
			if !out.Already {
				continue
			}
		}
		// The group is in use and not frozen: the markers of earlier jobs are cleared all the same.
		err = q.c.Alert(ctx, zone, jobs.Alert{Event: "clear", Object: group,
			Detail: map[string]any{"note": note}})
		if err != nil {
			return out, err
		}
	}
	if !known {
		return out, fmt.Errorf("group %s is neither in use nor frozen: %w", group, queue.ErrNotFound)
	}
	return out, nil
}

// thawGroup removes only the freeze that was read: a copy of this call that arrives late may find
// that a job has frozen the group since, and nobody has looked at that freeze.
func (q *Exclusion) thawGroup(ctx context.Context, out jobs.Cleared, frozen, note string) (
	jobs.Cleared, error) {
	_, since, _ := codec.ReadFrozen(frozen)
	t := codec.Turn{Verb: "clear", Object: out.Group, Note: note}
	if !since.IsZero() {
		t.Number = jobs.MicrosOf(since.Time).String()
	}
	c, err := q.c.Turn(ctx, out.Zone, t)
	switch {
	case err != nil:
		return out, err
	case c.Status == "other":
		job, _, why := codec.ReadFrozen(c.Before)
		return out, fmt.Errorf("group %s was frozen anew by %s (%s): %w", out.Group, job, why,
			queue.ErrStale)
	case c.Status == "ok":
		out.Already = false
		out.Job, _, out.Was = codec.ReadFrozen(c.Before)
	}
	return out, nil
}

// Thaw ends the freeze of a zone by hand. It returns true if the zone was not frozen.
func (q *Exclusion) Thaw(ctx context.Context, zone, note string) (bool, error) {
	if err := q.c.Places.KnowZone(ctx, zone); err != nil {
		return false, err
	}
	c, err := q.c.Turn(ctx, zone, codec.Turn{Verb: "thaw", Note: note})
	return c.Status == "already", err
}

// ClearMarkers orders that markers of earlier jobs on the hosts of a group count no more, unless
// the queue itself still knows the state of such a job. Each clear of a group does so.
func (q *Exclusion) ClearMarkers(ctx context.Context, zone, group, note string) error {
	if err := q.stampClear(ctx, zone, group); err != nil {
		return err
	}
	return q.c.Alert(ctx, zone, jobs.Alert{Event: "clear", Object: group,
		Detail: map[string]any{"note": note}})
}

func (q *Exclusion) stampClear(ctx context.Context, zone, group string) error {
	now, err := q.c.Now(ctx, zone)
	if err != nil {
		return err
	}
	return q.c.Say("clear", q.c.Redis().HSet(ctx, keys.Zone(zone, "cleared", ""), group,
		jobs.MicrosOf(now).String()).Err())
}

// ReleaseHost gives up the lock of a host. The lock belongs to a job which has ended, or whose task
// Redis has forgotten, and which might still act on the host. note says who looked, and why that is
// safe. Only the lock that was read is released: a copy of the call that arrives late may find
// another one.
func (q *Exclusion) ReleaseHost(ctx context.Context, zone, host, note string) (jobs.Released,
	error) {
	out := jobs.Released{Host: host, Zone: zone, Already: true}
	text, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "locks", ""), host).Result()
	words := strings.Fields(text)
	switch {
	case errors.Is(err, redis.Nil), err == nil && len(words) != 3:
		return out, nil
	case err != nil:
		return out, q.c.Say("release", err)
	}
	c, err := q.c.Turn(ctx, zone, codec.Turn{Verb: "release", Object: host, Note: note,
		Number: words[1]})
	if err != nil {
		return out, err
	}
	switch c.Status {
	case "busy":
		id, state, _ := strings.Cut(c.Before, " ")
		out.Job = jobs.ID(id)
		return out, fmt.Errorf("host %s is locked for job %s, whose state is %s: %w", host, id, state,
			queue.ErrHeld)
	case "other":
		return out, fmt.Errorf("host %s was taken by job %s meanwhile: %w", host, c.Before,
			queue.ErrStale)
	case "ok":
		until, _ := jobs.ParseMicros(words[0])
		out.Already, out.Job, out.Until = false, jobs.ID(c.Before), jobs.TimeOf(until)
	}
	return out, nil
}
