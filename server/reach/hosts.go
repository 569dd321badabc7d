package reach

import (
	"context"

	"muster/fleet"
	"muster/server/stock"
	"muster/server/web"
)

// Hosts finds the hosts that views and selectors reach.
type Hosts struct{ Look *stock.Looker }

// Near returns the zones of the hosts that a view shows.
func (h Hosts) Near(v *web.View) map[string]bool {
	zones := map[string]bool{}
	if seen := h.Look.SeenNow(v); seen != nil {
		for _, one := range seen.Hosts() {
			zones[one.Zone] = true
		}
	}
	return zones
}

// On returns the hosts that a selector picks now in the whole house, drained ones too; none if
// it has a mistake. An error comes from Redis.
func (h Hosts) On(ctx context.Context, selector string) ([]string, error) {
	scene, err := h.Look.Scene(web.AsServer(ctx), selector)
	if err != nil || scene.Stock == nil {
		return nil, err
	}
	hosts, err := scene.Choose(selector)
	if err != nil {
		return nil, nil
	}
	return stock.Names(hosts, func(fleet.Host) bool { return true }), nil
}
