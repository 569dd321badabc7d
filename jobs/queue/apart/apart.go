// Package apart makes one client of several servers, where zones have a Redis of their own. It is
// the client of a cluster, with a map from the configuration: each server has the slots of its
// zones, and the hub's server all others.
//
// Floor 2: may import jobs/queue/hooks and jobs/queue/keys.
package apart

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs/queue/keys"
)

// slots is the number of slots of a cluster.
const slots = 16384

// Slot returns the slot of a zone: all its keys are in that one.
func Slot(zone string) int {
	crc := uint16(0)
	for _, b := range []byte(zone) { // CRC-16/XMODEM, as the specification of Redis Cluster wants it
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}

// Check returns why zones cannot have these servers, by their names: two that share a slot have one
// server, and nobody can take the hub's slot from it.
func Check(hub string, zones map[string]string) (wrong []error) {
	owner := map[int]string{Slot(keys.HubZone): keys.HubZone}
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		slot := Slot(zone)
		other, taken := owner[slot]
		owner[slot] = zone
		switch {
		case !taken:
		case other == keys.HubZone && zones[zone] != hub:
			wrong = append(wrong, fmt.Errorf("zone %s cannot have a Redis of its own, because its name has "+
				"the slot of the hub (%d): name the zone otherwise", zone, slot))
		case other != keys.HubZone && zones[other] != zones[zone]:
			wrong = append(wrong, fmt.Errorf("zones %s and %s cannot have two Redis, because their names "+
				"have the same slot (%d): give them one, or name a zone otherwise", other, zone, slot))
		}
	}
	return wrong
}

// Slots returns which server has which slots, by their names.
func Slots(hub string, zones map[string]string) []redis.ClusterSlot {
	owner := map[int]string{}
	for zone, server := range zones {
		owner[Slot(zone)] = server
	}
	var list []redis.ClusterSlot
	add := func(from, to int, server string) {
		if from <= to {
			list = append(list, redis.ClusterSlot{Start: from, End: to,
				Nodes: []redis.ClusterNode{{Addr: server}}})
		}
	}
	next := 0
	for _, slot := range slices.Sorted(maps.Keys(owner)) {
		add(next, slot-1, hub)
		add(slot, slot, owner[slot])
		next = slot + 1
	}
	add(next, slots-1, hub)
	return list
}

// Zones has the URLs of the servers of zones that have one of their own.
type Zones map[string]string

// Words names the servers after the one of the hub, for messages.
func (z Zones) Words() string {
	if len(z) == 0 {
		return ""
	}
	return fmt.Sprintf(" and %d of zones", len(z))
}

// TLS reports whether one of the servers wants encrypted connections.
func (z Zones) TLS() bool {
	for _, url := range z {
		if strings.HasPrefix(url, "rediss:") {
			return true
		}
	}
	return false
}

// Names returns the servers by their names.
func (z Zones) Names() map[string]string {
	out := map[string]string{}
	for zone, url := range z {
		out[zone] = Name(url)
	}
	return out
}

// Name returns the name of a server: its URL without user and password. It is no host:port, in
// which the client of a cluster would replace an address of the loopback.
func Name(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	authority, path, slash := strings.Cut(rest, "/")
	authority = authority[strings.LastIndex(authority, "@")+1:]
	if slash {
		authority += "/"
	}
	return scheme + "://" + authority + path
}
