package read

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/keys"
)

// askOf returns the last order to ask a host about a job, or nil if there was none.
func (q *Tasks) askOf(ctx context.Context, zone string, id jobs.ID) (*jobs.Ask, error) {
	text, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "task:", string(id.Task())),
		"ask:"+id.Host()).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, q.c.Say("job", err)
	}
	return readAsk(text), nil
}

// readAsk reads an order as ask.lua stores it, or returns nil if it cannot be read.
func readAsk(text string) *jobs.Ask {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) != 4 {
		return nil
	}
	since, _, _ := strings.Cut(lines[0], " ")
	at, err := jobs.ParseMicros(since)
	if err != nil {
		return nil
	}
	out := &jobs.Ask{At: jobs.TimeOf(at), Note: lines[1], Words: lines[3]}
	if when, word, ok := strings.Cut(lines[2], " "); ok {
		if at, err = jobs.ParseMicros(when); err != nil {
			return nil
		}
		out.Answered, out.Answer = jobs.TimeOf(at), jobs.Answer(word)
	}
	return out
}
