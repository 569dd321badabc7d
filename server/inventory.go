package server

import (
	"context"

	"muster/api"
	"muster/fleet"
)

type inventoryOutput struct{ Body api.PublishedInventory }

// inventory answers with the inventory in force.
func (s *Server) inventory(context.Context, *nothing) (*inventoryOutput, error) {
	now, err := s.stock.Get()
	if err != nil {
		return nil, refusal(mistakes("path", err))
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
