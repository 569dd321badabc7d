package hub

import (
	"context"

	"github.com/redis/go-redis/v9"

	"muster/jobs/quarantine"
	"muster/jobs/queue/keys"
)

// Quarantine sets hosts aside, or releases them; verb is quarantine.SetAside or its opposite. hosts
// are by zone. It returns the hosts that changed; the others keep their entry. The zone itself
// decides and writes the event, so a call that broke off may be repeated.
func (q *Drains) Quarantine(ctx context.Context, verb string, hosts map[string][]string,
	note string) ([]string, error) {
	before, err := q.Quarantined(ctx)
	if err != nil {
		return nil, err
	}
	those, changed := sift(hosts, func(host string) bool {
		_, in := before[host]
		return in != (verb == quarantine.SetAside)
	})
	return changed, q.tellHosts(ctx, those, verb, note)
}

// Quarantined returns the hosts that take no job but checks.
func (q *Drains) Quarantined(ctx context.Context) (map[string]quarantine.Mark, error) {
	zones, err := q.c.Zones(ctx)
	if err != nil || len(zones) == 0 {
		return nil, err
	}
	found := make([]*redis.MapStringStringCmd, len(zones))
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, zone := range zones {
			found[i] = p.HGetAll(ctx, keys.Zone(zone, "quarantined", ""))
		}
		return nil
	})
	if err != nil {
		return nil, q.c.Say("quarantined", err)
	}
	out := map[string]quarantine.Mark{}
	for i, zone := range zones {
		for host, entry := range found[i].Val() {
			m := quarantine.ReadMark(entry)
			m.Zone = zone
			out[host] = m
		}
	}
	return out, nil
}
