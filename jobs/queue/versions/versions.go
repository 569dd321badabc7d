// Package versions reads the inventory as Redis has it, also a version that was replaced.
//
// Floor 4: may import fleet, jobs/queue and what is below.
package versions

import (
	"context"
	"encoding/json"
	"fmt"

	"muster/fleet"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// Inventory reads versions of the inventory.
type Inventory struct{ c *queue.Conn }

// New returns the versions behind a connection.
func New(c *queue.Conn) *Inventory { return &Inventory{c} }

// Version returns the version in force; empty: there is none.
func (q *Inventory) Version(ctx context.Context) (string, error) {
	v, err := q.c.Redis().HMGet(ctx, keys.Hub("inventory", ""), "version").Result()
	if err != nil {
		return "", q.c.Say("inventory", err)
	}
	text, _ := v[0].(string) // there is none before the first publish
	return text, nil
}

// pageHosts is the number of hosts that are asked for at once.
const pageHosts = 1000

// Hosts returns all hosts of a version by name. The map is empty if Redis has forgotten it.
func (q *Inventory) Hosts(ctx context.Context, version string) (map[string]fleet.Host, error) {
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string]fleet.Host{}
	for _, zone := range zones {
		if err := q.zone(ctx, zone, version, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// zone adds the hosts of a zone.
func (q *Inventory) zone(ctx context.Context, zone, version string,
	out map[string]fleet.Host) error {
	for cursor := uint64(0); ; {
		list, next, err := q.c.Redis().HScan(ctx, keys.Zone(zone, "hosts:", version), cursor, "",
			pageHosts).Result()
		if err != nil {
			return q.c.Say("hosts", err)
		}
		for i := 1; i < len(list); i += 2 {
			var h fleet.Host
			if err := json.Unmarshal([]byte(list[i]), &h); err != nil {
				return fmt.Errorf("host %s of inventory %s: %w", list[i-1], version, err)
			}
			out[list[i-1]] = h
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
