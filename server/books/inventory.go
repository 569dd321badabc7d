package books

import (
	"context"

	"muster/api"
	"muster/fleet"
	"muster/server/web"
)

type inventoryOutput struct{ Body api.PublishedInventory }

// inventory answers with the inventory in force.
func (s HostRoutes) inventory(context.Context, *web.Nothing) (*inventoryOutput, error) {
	now, err := s.Stock.Get()
	if err != nil {
		return nil, web.Refusal(web.Mistakes("path", err))
	}
	out := &inventoryOutput{api.PublishedInventory{Version: now.Version, Hosts: now.Hosts(),
		Limits: []api.DefinedLimit{}}}
	if out.Body.Hosts == nil {
		out.Body.Hosts = []fleet.Host{}
	}
	for _, l := range now.Limits() {
		out.Body.Limits = append(out.Body.Limits, api.DefinedLimit(l))
	}
	return out, nil
}
