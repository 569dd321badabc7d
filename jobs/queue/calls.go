package queue

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/codec"
	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

// Turn calls the script that turns the switches of a zone.
func (q *Conn) Turn(ctx context.Context, zone string, t codec.Turn) (codec.Turned, error) {
	r, err := q.Script(ctx, Scripts.Control, zone, t.Verb, t.Object, codec.OneLine(t.Note), t.Number)
	if err != nil {
		return codec.Turned{}, err
	}
	c := codec.Turned{Status: r.Text(), Before: r.Text()}
	c.Number = int64(r.Micros())
	if r.Err != nil {
		return c, fmt.Errorf("%s in zone %s: %w", t.Verb, zone, r.Err)
	}
	if c.Status == codec.Absent {
		return c, fmt.Errorf("%s in zone %s: %s: %w", t.Verb, zone, t.Object, ErrNotFound)
	}
	return c, nil
}

// HubScript calls a script that uses only keys of the hub.
func (q *Conn) HubScript(ctx context.Context, s *Script, args ...any) (codec.Reader, error) {
	c, _, err := q.At(ctx, keys.HubZone)
	if err != nil {
		return codec.Reader{}, err
	}
	answer, err := s.Call(ctx, c, keys.HubZone, args...).Result()
	if err != nil {
		q.Elsewhere(ctx)
		return codec.Reader{}, q.Say(s.name, err)
	}
	if list, ok := answer.([]any); ok {
		return codec.Reader{Left: list}, nil
	}
	return codec.Reader{Left: []any{answer}}, nil
}

// pipeMax bounds the calls in one round trip.
const pipeMax = 16

// Calls describes n calls of one script.
type Calls struct {
	*Script
	N      int
	Args   func(int) []any
	Answer func(int, []any) error // nil: the answers are dropped
}

// Pipeline makes many calls, several of them in one round trip.
func (q *Conn) Pipeline(ctx context.Context, zone string, c Calls) error {
	keys := []string{keys.Zone(zone, "zone", "")}
	for from := 0; from < c.N; from += pipeMax {
		to := min(from+pipeMax, c.N)
		node, err := q.enter(ctx, zone)
		if err != nil {
			return err
		}
		// The first call of this script loaded it. A restart in between shows as an error, and the same
		// submit, repeated, continues from here.
		add := func(p redis.Pipeliner) {
			for i := from; i < to; i++ {
				c.Redis().EvalSha(ctx, p, keys, c.Args(i)...)
			}
		}
		cmds, acked, err := q.send(hooks.Named(ctx, c.name), node, keys, add)
		if err != nil {
			q.Elsewhere(ctx)
			return q.Say(c.name, err)
		}
		for i, cmd := range cmds {
			v, err := cmd.(*redis.Cmd).Slice()
			if err != nil {
				return q.Say(c.name, err)
			}
			if c.Answer == nil {
				continue
			}
			if err := c.Answer(from+i, v); err != nil {
				return err
			}
		}
		if why := q.cfg.Fewer(acked); why != "" {
			return fmt.Errorf("%w: %s a part of the jobs: submit again", ErrFewer, why)
		}
	}
	return nil
}

// send sends calls together; with redis.durable it waits for the replicas.
func (q *Conn) send(ctx context.Context, c *redis.Client, keys []string,
	add func(redis.Pipeliner)) (cmds []redis.Cmder, acked int, err error) {
	if q.cfg.Durable > 0 {
		return q.lasting(ctx, c, keys, add)
	}
	cmds, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		add(p)
		return nil
	})
	return cmds, 0, err
}
