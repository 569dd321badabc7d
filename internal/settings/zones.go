package settings

import (
	"errors"
	"fmt"
	"strings"

	"muster/fleet"
	"muster/jobs/queue/apart"
)

// apart returns the URLs of the zones that have a Redis of their own.
func (r Redis) apart() apart.Zones {
	zones, _ := r.readZones() // Validate has reported its mistakes
	return zones
}

// readZones reads redis.zones: each of its texts is ZONE=URL.
func (r Redis) readZones() (apart.Zones, error) {
	out := apart.Zones{}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for i, pair := range r.Zones {
		zone, url, _ := strings.Cut(pair, "=")
		switch {
		case url == "", strings.ContainsAny(zone, ":/@"):
			// The text is not shown: it may be a URL with a password.
			bad("redis.zones: text %d: want ZONE=URL such as zrh=rediss://redis.zrh.example.org:6380", i+1)
		case fleet.CheckZone(zone) != nil:
			bad("redis.zones: text %d: %w", i+1, fleet.CheckZone(zone))
		case out[zone] != "":
			bad("redis.zones: zone %s is there twice", zone)
		default:
			out[zone] = url
		}
	}
	if len(out) == 0 {
		out = nil
	}
	return out, errors.Join(errs...)
}
