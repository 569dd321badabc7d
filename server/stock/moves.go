package stock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster/fleet"
	"muster/jobs/queue/read"
)

// staysEvery is the time after which hosts that had to stay in their zone are looked at again.
const staysEvery = 5 * time.Second

// staysShown bounds the hosts that a complaint names.
const staysShown = 5

// staying returns an inventory in which hosts that have work in the zone before stay there, because
// two zones do not see each other's locks, and says in words which they are. The other members of
// their redundancy groups stay with them.
func (s *Store) staying(ctx context.Context, inv *fleet.Inventory) (*fleet.Inventory, string,
	error) {
	if s.needs.Moving == nil {
		return inv, "", nil
	}
	published, err := s.needs.Publishing.Inventory(ctx)
	if err != nil || published.Version == inv.Version() {
		return inv, "", err
	}
	hosts, zones := inv.Hosts(), map[string]string{}
	for _, h := range hosts {
		zones[h.Name] = h.Zone
	}
	movers, err := s.needs.Moving.Movers(ctx, published.Version, zones)
	if err != nil || len(movers) == 0 {
		return inv, "", err
	}
	stay, groups := map[string]string{}, map[string]string{}
	for _, m := range movers {
		stay[m.Host] = m.From
		if h, _ := inv.Host(m.Host); h.Group != "" {
			groups[h.Group] = m.From
		}
	}
	for _, h := range hosts {
		if zone, together := groups[h.Group]; together {
			stay[h.Name] = zone
		}
	}
	return inv.InZones(stay), staysText(movers), nil
}

func staysText(movers []read.Mover) string {
	var list []string
	for _, m := range movers[:min(len(movers), staysShown)] {
		list = append(list, fmt.Sprintf("%s in %s (job %s)", m.Host, m.From, m.Job))
	}
	more := ""
	if n := len(movers) - len(list); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("hosts stay in the zone before until their work there has ended, because two "+
		"jobs could be on them at once: %s%s", strings.Join(list, ", "), more)
}
