package read

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// rollCmd asks for the progress of a rollout.
type rollCmd struct {
	fields *redis.SliceCmd
	begun  *redis.IntCmd
}

func askRoll(ctx context.Context, p redis.Pipeliner, zone string, id jobs.TaskID) rollCmd {
	return rollCmd{
		p.HMGet(ctx, keys.Zone(zone, "task:", string(id)), "allowed", "wave", "stopped", "stoppedNote",
			"over", "pass", "checks", "accepted"),
		p.HLen(ctx, keys.Zone(zone, "sem:", codec.RulePrefix+string(id))),
	}
}

func readRoll(asked string, c rollCmd, part taskPart) (*jobs.RolloutInfo, error) {
	out := &jobs.RolloutInfo{}
	if err := json.Unmarshal([]byte(asked), &out.Rollout); err != nil {
		return nil, fmt.Errorf("its rollout cannot be read: %w", err)
	}
	text := func(i int) string {
		s, _ := c.fields.Val()[i].(string)
		return s
	}
	instant := func(i int) jobs.Time {
		m, _ := jobs.ParseMicros(text(i))
		return jobs.TimeOf(m)
	}
	if n, err := strconv.Atoi(text(0)); err == nil {
		out.MaxFailed = &n
	}
	out.Wave, _ = strconv.Atoi(text(1))
	out.StoppedAt, out.Stopped, out.Over = instant(2), text(3), instant(4)
	out.Pass, out.Checks, out.Begun = text(5) != "", jobs.TaskID(text(6)), int(c.begun.Val())
	out.Accepted, _ = strconv.Atoi(text(7))
	for o, n := range part.outcomes {
		if o.Fails(out.UnreachableOK) {
			out.Failed += n
		}
	}
	return out, nil
}
