package orders

import (
	"context"
	"maps"
	"slices"

	"muster/api"
	"muster/jobs"
	"muster/jobs/quarantine"
	"muster/server/stock"
	"muster/server/web"
)

// The words for what an order about hosts in quarantine has done.
const (
	setAside = "set aside"
	takeBack = "released"
)

type quarantineOutput struct{ Body api.QuarantineList }

// quarantine lets hosts take no job but checks. Jobs that run go on, those that wait go on waiting.
func (s HostRoutes) quarantine(ctx context.Context, in *drainInput) (*drainOutput, error) {
	return s.turnHosts(ctx, in, setAside, s.turning(quarantine.SetAside))
}

func (s HostRoutes) unquarantine(ctx context.Context, in *drainInput) (*drainOutput, error) {
	return s.turnHosts(ctx, in, takeBack, s.turning(quarantine.Release))
}

func (s HostRoutes) turning(verb string) func(context.Context, map[string][]string, string) (
	[]string, error) {
	return func(ctx context.Context, hosts map[string][]string, note string) ([]string, error) {
		return s.Drains.Quarantine(ctx, verb, hosts, note)
	}
}

// aside answers GET /v1/quarantine with the hosts that the caller sees.
func (s HostRoutes) aside(ctx context.Context, _ *web.Nothing) (*quarantineOutput, error) {
	v, err := s.Look.Scene(ctx, "")
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &quarantineOutput{api.QuarantineList{Hosts: []api.Quarantined{}}}
	if v.Stock == nil {
		return nil, web.Problem(stock.ErrNone)
	}
	all := v.Quarantined()
	for _, host := range slices.Sorted(maps.Keys(all)) {
		m := all[host]
		out.Body.Hosts = append(out.Body.Hosts, api.Quarantined{Host: host, Zone: m.Zone,
			Since: jobs.TimeOf(jobs.Micros(m.Since)), Job: jobs.ID(m.Job), Why: m.Why})
	}
	return out, nil
}
