package hub

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"muster/jobs/quarantine"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Quarantine sets hosts aside, or releases them; verb is quarantine.SetAside or its opposite. hosts
// are by zone. It returns the hosts that changed; the others keep their entry. The zone itself
// decides and writes the event, so a call that broke off may be repeated. A host that has moved to
// another zone is set aside there as well, and released in both.
func (q *Drains) Quarantine(ctx context.Context, verb string, hosts map[string][]string,
	note string) ([]string, error) {
	before, err := q.quarantined(ctx) // of all zones, or a host might seem not to be set aside
	if err != nil {
		return nil, err
	}
	those, changed := map[string][]string{}, []string{}
	for zone, list := range hosts {
		for _, host := range list {
			m, in := before[host]
			moved := in && m.Zone != zone // the inventory had it in another zone then
			if in == (verb == quarantine.SetAside) && !moved {
				continue
			}
			those[zone], changed = append(those[zone], host), append(changed, host)
			if moved && verb == quarantine.Release {
				those[m.Zone] = append(those[m.Zone], host)
			}
		}
	}
	slices.Sort(changed)
	return changed, q.tellHosts(ctx, those, verb, note)
}

// Quarantined returns the hosts that take no job but checks, without those of a zone whose Redis is
// away.
func (q *Drains) Quarantined(ctx context.Context) (map[string]quarantine.Mark, error) {
	marks, err := q.quarantined(ctx)
	if queue.Away(err) {
		err = nil
	}
	return marks, err
}

// quarantined is Quarantined with the error of a zone that is away, beside the hosts of the others.
func (q *Drains) quarantined(ctx context.Context) (map[string]quarantine.Mark, error) {
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
	if err != nil && !queue.Away(err) {
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
	return out, q.c.Say("quarantined", err)
}
