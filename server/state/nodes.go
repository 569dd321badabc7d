package state

import (
	"context"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/read"
	"muster/server/nodes"
	"muster/server/stock"
	"muster/server/waits"
	"muster/server/web"
)

type (
	nodesOutput struct{ Body api.NodeList }
	queueOutput struct{ Body api.QueueInfo }
)

// NodeRoutes shows the nodes, and the queues of zones.
type NodeRoutes struct {
	Queue Queue
	Stock *stock.Store
	Why   *waits.Reader
	Log   hclog.Logger
}

// Routes registers the routes of the resource.
func (s NodeRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/nodes", "List nodes"), s.nodes)
	huma.Register(api, web.Get("/v1/queue", "Show how many jobs wait in each zone"), s.depths)
}

func (s NodeRoutes) nodes(ctx context.Context, _ *web.Nothing) (*nodesOutput, error) {
	list, err := s.Queue.Nodes.Nodes(ctx)
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
				list[i].AddNote(text)
			}
		}
	}
	if err := nodes.Tell(ctx, s.Queue.Nodes, list); err != nil {
		return nil, web.Problem(err)
	}
	return &nodesOutput{api.NodeList{Nodes: list, Duties: s.dutyList(ctx)}}, nil
}

func (s NodeRoutes) depths(ctx context.Context, _ *web.Nothing) (*queueOutput, error) {
	zones, err := s.Queue.Conn.Zones(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	missing, unknown := noNode(ctx, s.Queue, s.Stock, "")
	if unknown != nil && !queue.OneZone(unknown) {
		return nil, web.Problem(unknown)
	}
	zones = slices.DeleteFunc(zones, func(zone string) bool { return !s.Sees(ctx, zone) })
	out := &queueOutput{api.QueueInfo{Zones: make([]api.Zone, 0, len(zones))}}
	for _, zone := range zones {
		z, err := s.zone(ctx, zone)
		if queue.OneZone(err) { // which is no reason to hide the other zones
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

// Sees reports whether a caller sees the queue of a zone: all work on all hosts of it.
func (s NodeRoutes) Sees(ctx context.Context, zone string) bool {
	v := web.ViewOf(ctx)
	if v.All() {
		return true
	}
	now := s.Stock.Now()
	return now != nil && v.SeesAll(stock.Names(now.Hosts(), func(h fleet.Host) bool {
		return h.Zone == zone
	})...)
}

// zone reads the queue of a zone.
func (s NodeRoutes) zone(ctx context.Context, zone string) (api.Zone, error) {
	d, err := s.Queue.Zones.Depth(ctx, zone)
	if err != nil {
		return api.Zone{}, err
	}
	z := zoneOf(d)
	z.Deferred, err = s.Why.Deferrals(ctx, zone)
	return z, err
}

func zoneOf(d read.Depth) api.Zone {
	return api.Zone{Zone: d.Zone, Queued: d.Queued, Again: d.Again, Due: d.Due, Oldest: d.Oldest,
		Overdue: d.Overdue, Frozen: d.Frozen, Why: d.Why, Owes: d.Owes, Halted: d.Halted,
		Paused: d.Paused, Sharing: d.Sharing}
}

// dutyList returns the duties with their servers. It is a hint for people: an error of Redis leaves
// it empty.
func (s NodeRoutes) dutyList(ctx context.Context) []jobs.Duty {
	list, err := s.Queue.Duties.Leaders(ctx)
	if err != nil {
		s.Log.Debug("duties cannot be listed", "error", err)
	}
	return slices.Concat([]jobs.Duty{}, list)
}
