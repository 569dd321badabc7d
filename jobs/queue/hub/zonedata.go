package hub

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/keys"
)

// zonesField begins the fields of the timetable's hash in which servers report their time zone
// data; the name of the server follows.
const zonesField = "zones:"

// zonesKeep is the time for which such a report counts.
const zonesKeep = time.Minute

// SayZones reports the time zone data of this server to the others, and returns the reports of
// others in the last minute, by their names.
func (q *Timetable) SayZones(ctx context.Context, server, data string) (map[string]string, error) {
	key := keys.Hub("windows", "")
	now := time.Now()
	var fields *redis.StringSliceCmd
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, key, zonesField+server, fmt.Sprint(now.Unix(), " ", data))
		fields = p.HKeys(ctx, key)
		return nil
	})
	if err != nil {
		return nil, q.c.Say("windows", err)
	}
	others := map[string]string{}
	for _, f := range fields.Val() {
		name, is := strings.CutPrefix(f, zonesField)
		if !is || name == server {
			continue
		}
		text, err := q.c.Redis().HGet(ctx, key, f).Result()
		if err != nil {
			continue // removed meanwhile
		}
		at, version, _ := strings.Cut(text, " ")
		if s, err := strconv.ParseInt(at, 10, 64); err != nil || now.Sub(time.Unix(s, 0)) > zonesKeep {
			if err := q.c.Redis().HDel(ctx, key, f).Err(); err != nil {
				return nil, q.c.Say("windows", err)
			}
			continue
		}
		others[name] = version
	}
	return others, nil
}
