package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/events"
	"muster/jobs"
	"muster/jobs/queue/inbox"
	"muster/jobs/queue/keys"
)

// setAside ends the events that waited at the backup: what they have started since is not known. A
// person replays those that are still needed.
func (f *Filler) setAside(ctx context.Context, made time.Time) error {
	db, counts := f.a.c.Redis(), keys.Hub("inbox", "")
	fields, err := db.HKeys(ctx, counts).Result()
	for _, name := range fields {
		if err == nil && (strings.HasPrefix(name, "waiting:") || strings.HasPrefix(name, "bytes:")) {
			err = db.HDel(ctx, counts, name).Err()
		}
	}
	if err != nil {
		return f.a.c.Say("events", err)
	}
	why := fmt.Sprintf("Redis was restored from a backup of %s, when it waited: what it has started "+
		"since is not known; `muster event replay` works on it again",
		made.UTC().Format(time.RFC3339))
	outcome, err := json.Marshal(events.Outcome{Firings: []events.Firing{{Why: why}}})
	if err != nil {
		return err
	}
	ids, err := db.ZRange(ctx, keys.Hub("arrivals", ""), 0, -1).Result()
	now := jobs.MicrosOf(time.Now())
	for _, id := range ids {
		var v []any
		key := keys.Hub("event:", id)
		if err == nil {
			v, err = db.HMGet(ctx, key, "state", "source", "size").Result()
		}
		if err != nil {
			return f.a.c.Say("events", err)
		}
		if v[0] != "waiting" {
			continue
		}
		source, _ := v[1].(string)
		_, err = db.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, key, "state", string(inbox.Stuck), "outcome", outcome, "ended", now.String())
			p.ZAdd(ctx, keys.Hub("past:", source), redis.Z{Score: float64(now), Member: id})
			return nil
		})
	}
	return f.a.c.Say("events", err)
}
