package server

import (
	"context"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/read"
	"muster/server/stock"
	"muster/server/waits"
	"muster/server/web"
)

type (
	nodesOutput struct{ Body api.NodeList }
	queueOutput struct{ Body api.QueueInfo }
)

// nodeRoutes shows the nodes, and what waits in their zones.
type nodeRoutes struct {
	queue Stores
	stock *stock.Store
	why   *waits.Reader
	log   hclog.Logger
}

func (s nodeRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/nodes", "List nodes"), s.nodes)
	huma.Register(api, web.Get("/v1/queue", "Show what waits in each zone"), s.depths)
}

func (s nodeRoutes) nodes(ctx context.Context, _ *web.Nothing) (*nodesOutput, error) {
	list, err := s.queue.Hub.Nodes.Nodes(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	if list == nil {
		list = []jobs.Node{}
	}
	for i := range list {
		if list[i].Children == nil {
			list[i].Children = []jobs.Child{}
		}
		if list[i].Zones == nil {
			list[i].Zones = []string{}
		}
		for _, text := range []string{otherZones(list[i]), list[i].Doubt} {
			if text != "" {
				list[i].Note = strings.TrimPrefix(list[i].Note+"; "+text, "; ")
			}
		}
	}
	return &nodesOutput{api.NodeList{Nodes: list, Duties: s.dutyList(ctx)}}, nil
}

func (s nodeRoutes) depths(ctx context.Context, _ *web.Nothing) (*queueOutput, error) {
	zones, err := s.queue.Conn.Zones(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	missing, unknown := noNode(ctx, s.queue, s.stock, "")
	if unknown != nil && !queue.Spoiled(unknown) {
		return nil, web.Problem(unknown)
	}
	out := &queueOutput{api.QueueInfo{Zones: make([]api.Zone, 0, len(zones))}}
	for _, zone := range zones {
		z, err := s.zone(ctx, zone)
		if queue.Spoiled(err) { // which is no reason to hide the other zones
			z, err = api.Zone{Zone: zone, Trouble: err.Error()}, nil
			z.Deferred.Appointments = []jobs.Appointment{}
		}
		if err != nil {
			return nil, web.Problem(err)
		}
		if z.NoNode = missing[zone]; unknown != nil {
			z.NoNode = "whether a node works here is not known: " + unknown.Error()
		}
		out.Body.Zones = append(out.Body.Zones, z)
	}
	return out, nil
}

// zone reads what waits in a zone.
func (s nodeRoutes) zone(ctx context.Context, zone string) (api.Zone, error) {
	d, err := s.queue.Read.Zones.Depth(ctx, zone)
	if err != nil {
		return api.Zone{}, err
	}
	z := zoneOf(d)
	z.Deferred, err = s.why.Deferrals(ctx, zone)
	return z, err
}

func zoneOf(d read.Depth) api.Zone {
	return api.Zone{Zone: d.Zone, Queued: d.Queued, Again: d.Again, Due: d.Due, Oldest: d.Oldest,
		Overdue: d.Overdue, Frozen: d.Frozen, Why: d.Why, Owes: d.Owes, Halted: d.Halted,
		Paused: d.Paused, Sharing: d.Sharing}
}

// dutyList is who has which duty. It is a hint for people, so that it cannot be
// read is not worth a refusal.
func (s nodeRoutes) dutyList(ctx context.Context) []jobs.Duty {
	list, err := s.queue.Hub.Duties.Leaders(ctx)
	if err != nil {
		s.log.Debug("duties cannot be listed", "error", err)
	}
	return slices.Concat([]jobs.Duty{}, list)
}
