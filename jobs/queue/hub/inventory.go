package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Inventory publishes the inventory: each zone gets its hosts only.
type Inventory struct{ c *queue.Conn }

// NewInventory returns the inventory behind a connection.
func NewInventory(c *queue.Conn) *Inventory { return &Inventory{c} }

// inventoryKeep is the lifetime of a replaced version: tasks have pinned it.
const inventoryKeep = codec.TaskKeep

// Published says which inventory is in force.
type Published struct {
	Version string      `json:"version"`
	Hosts   int         `json:"hosts"`
	At      jobs.Micros `json:"at"`
}

// Publish puts an inventory in force. Each zone gets its own hosts only. A version that is in force
// already is left unchanged; a replaced version stays for 70 days, the lifetime of a task that
// pinned it. A zone whose Redis is away gets its hosts when it is back: a server that compares
// finds them missing there. If a limit is raised or removed, the jobs that wait for it may try
// again; a new limit counts for existing tasks too.
func (q *Inventory) Publish(ctx context.Context, version string, hosts []fleet.Host,
	limits []fleet.Limit) error {
	before, err := q.Inventory(ctx)
	if err != nil {
		return err
	}
	zones, err := byZone(hosts, limits)
	if err != nil {
		return err
	}
	of, err := q.limitsOf(ctx, limits)
	if err != nil {
		return err
	}
	for zone := range zones {
		if of[zone] == nil {
			of[zone] = map[string]string{}
		}
	}
	for zone, want := range of {
		err := q.publishZone(ctx, zone, version, zones[zone], want)
		if err != nil && !queue.Away(err) {
			return q.c.Say("publish inventory", err)
		}
	}
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	err = q.c.Redis().HSet(ctx, keys.Hub("inventory", ""), "version", version, "hosts", len(hosts),
		"at", jobs.MicrosOf(now).String()).Err()
	if err != nil || before.Version == version || before.Version == "" {
		return q.c.Say("publish inventory", err)
	}
	return q.retire(ctx, before.Version)
}

// zonePart is the part of an inventory for one zone: names and values in turns.
type zonePart struct{ hosts, traits []any }

func byZone(hosts []fleet.Host, limits []fleet.Limit) (map[string]*zonePart, error) {
	zones := map[string]*zonePart{}
	part := func(zone string) *zonePart {
		if zones[zone] == nil {
			zones[zone] = &zonePart{}
		}
		return zones[zone]
	}
	for _, h := range hosts {
		text, err := json.Marshal(h)
		if err != nil {
			return nil, err
		}
		p := part(h.Zone)
		p.hosts = append(p.hosts, h.Name, text)
		if t := traits(h, limits); t != noTraits {
			p.traits = append(p.traits, h.Name, t)
		}
	}
	for _, l := range limits {
		part(l.Zone)
	}
	if zones[keys.HubZone] != nil {
		return nil, fmt.Errorf("zone %q: the name is taken by muster itself", keys.HubZone)
	}
	return zones, nil
}

const noTraits = "- -"

// traits returns what the scripts must know about a host: its customer, its group and the limits
// that its jobs count against.
func traits(h fleet.Host, limits []fleet.Limit) string {
	words := append([]string{cmp.Or(h.Customer, "-"), cmp.Or(h.Group, "-")},
		fleet.Needs(h, limits)...)
	return strings.Join(words, " ")
}

// publishZone gives a zone its part of an inventory; nil: it has none, and gets its limits only.
// The hosts come last: where they are, all else is, also if the zone was lost half way.
func (q *Inventory) publishZone(ctx context.Context, zone, version string, part *zonePart,
	limits map[string]string) error {
	if part == nil {
		return q.publishLimits(ctx, zone, limits)
	}
	if err := q.write(ctx, keys.Zone(zone, "traits:", version), part.traits); err != nil {
		return err
	}
	// A zone that is in the list and not there is one that Redis has forgotten.
	if err := q.c.Enter(ctx, zone); err != nil {
		return err
	}
	if err := q.c.Redis().SAdd(ctx, keys.Hub("zones", ""), zone).Err(); err != nil {
		return err
	}
	if err := q.publishLimits(ctx, zone, limits); err != nil {
		return err
	}
	if err := q.amend(ctx, zone, version); err != nil {
		return err
	}
	return q.write(ctx, keys.Zone(zone, "hosts:", version), part.hosts)
}

// write writes names and values, which stay.
func (q *Inventory) write(ctx context.Context, key string, pairs []any) error {
	for chunk := range slices.Chunk(pairs, 2*codec.ChunkMax) {
		if err := q.c.Redis().HSet(ctx, key, chunk...).Err(); err != nil {
			return err
		}
	}
	return q.c.Redis().Persist(ctx, key).Err()
}

// limitsOf returns the limits of the inventory for every zone that was ever used.
func (q *Inventory) limitsOf(ctx context.Context, limits []fleet.Limit) (
	map[string]map[string]string, error) {
	zones, err := q.c.Zones(ctx)
	want := map[string]map[string]string{}
	for _, zone := range zones {
		want[zone] = map[string]string{}
	}
	for _, l := range limits {
		if want[l.Zone] == nil {
			want[l.Zone] = map[string]string{}
		}
		want[l.Zone][l.Name] = strconv.Itoa(l.Max)
	}
	return want, err
}

// publishLimits gives a zone its limits.
func (q *Inventory) publishLimits(ctx context.Context, zone string, want map[string]string) error {
	is, err := q.c.Redis().HGetAll(ctx, keys.Zone(zone, "limits", "")).Result()
	if err != nil {
		return q.c.Say("publish limits", err)
	}
	for name := range is {
		if _, ok := want[name]; !ok {
			want[name] = ""
		}
	}
	for name, most := range want {
		if is[name] == most {
			continue
		}
		if _, err := q.c.Turn(ctx, zone, codec.Turn{Verb: "limit", Object: name,
			Number: most}); err != nil {
			return err
		}
	}
	return nil
}

func (q *Inventory) retire(ctx context.Context, version string) error {
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return err
	}
	for _, zone := range zones {
		for _, kind := range []string{"hosts:", "traits:"} {
			key := keys.Zone(zone, kind, version)
			err := q.c.Redis().Expire(ctx, key, inventoryKeep).Err()
			if err != nil && !queue.Away(err) {
				return q.c.Say("publish inventory", err)
			}
		}
	}
	return nil
}

// Inventory returns the inventory in force; Version is empty if there is none.
func (q *Inventory) Inventory(ctx context.Context) (Published, error) {
	h, err := q.c.Redis().HGetAll(ctx, keys.Hub("inventory", "")).Result()
	if err != nil {
		return Published{}, q.c.Say("inventory", err)
	}
	at, _ := jobs.ParseMicros(h["at"])
	n, _ := jobs.ParseMicros(h["hosts"])
	return Published{Version: h["version"], Hosts: int(n), At: at}, nil
}
