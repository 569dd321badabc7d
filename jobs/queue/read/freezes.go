package read

import (
	"context"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Freeze describes a zone in which nothing starts before an instant that is known, for example
// after a restart of Redis.
type Freeze struct {
	Zone  string
	Until jobs.Time // not set: Redis has forgotten the zone, and the next call makes it anew, frozen
	Why   string
}

// Freezes returns those of the zones that are frozen until a known instant, and those that Redis
// has forgotten. A zone that waits for history has no such instant, and a zone that cannot be read
// is left out. Freezes makes one call for all zones, and one more for each zone that has a freeze.
func (q *Zones) Freezes(ctx context.Context, zones []string) []Freeze {
	found := make([]*redis.SliceCmd, len(zones))
	// Exec returns only the first error; each command has its own.
	_, _ = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, zone := range zones {
			found[i] = p.HMGet(ctx, keys.Zone(zone, "zone", ""), "frozen", "why", "owed", "run")
		}
		return nil
	})
	var out []Freeze
	for i, zone := range zones {
		v := found[i].Val()
		if len(v) == 0 || codec.TextOf(v, 2) != "" {
			continue
		}
		if codec.TextOf(v, 3) == "" {
			out = append(out, Freeze{Zone: zone})
			continue
		}
		until, _ := jobs.ParseMicros(codec.TextOf(v, 0))
		if until == 0 {
			continue
		}
		if now, err := q.c.Now(ctx, zone); err == nil && until.Time().After(now) {
			out = append(out, Freeze{zone, jobs.TimeOf(until), codec.TextOf(v, 1)})
		}
	}
	return out
}
