package orders

import (
	"context"
	"errors"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/stock"
	"muster/server/web"
)

type (
	groupsOutput  struct{ Body api.GroupList }
	limitsOutput  struct{ Body api.LimitList }
	clearedOutput struct{ Body jobs.Cleared }
)

// Exclusion releases groups, hosts and zones, after a person has looked at them.
type Exclusion interface {
	ClearGroup(ctx context.Context, group, note string) (jobs.Cleared, error)
	ClearMarkers(ctx context.Context, zone, group, note string) error
	Thaw(ctx context.Context, zone, note string) (already bool, err error)
	ReleaseHost(ctx context.Context, zone, host, note string) (jobs.Released, error)
}

// Groups reads redundancy groups and limits.
type Groups interface {
	Groups(ctx context.Context) ([]jobs.Group, error)
	Limits(ctx context.Context) ([]jobs.Limit, error)
}

// GroupRoutes shows redundancy groups and limits, and clears groups that are frozen.
type GroupRoutes struct {
	Exclusion Exclusion
	Groups    Groups
	Stock     *stock.Store
	Log       hclog.Logger
}

// Routes registers the routes of the resource.
func (s GroupRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/groups", "List groups in use or frozen"), s.groups)
	huma.Register(api, web.Post("/v1/groups/{group}/clear", "Clear a frozen group"), s.clearGroup)
	huma.Register(api, web.Get("/v1/limits",
		"List limits and the hosts that count against them"), s.limits)
}

// groups lists the redundancy groups that are in use or frozen.
func (s GroupRoutes) groups(ctx context.Context, _ *web.Nothing) (*groupsOutput, error) {
	list, err := s.Groups.Groups(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	if list == nil {
		list = []jobs.Group{}
	}
	if st := s.Stock.Now(); st != nil {
		members := map[string][]string{}
		for _, h := range st.Hosts() {
			if h.Group != "" {
				members[h.Group] = append(members[h.Group], h.Name)
			}
		}
		for i := range list {
			if list[i].Hosts == nil {
				list[i].Hosts = members[list[i].Name]
			}
		}
	}
	list = slices.DeleteFunc(list, func(g jobs.Group) bool {
		return !web.ViewOf(ctx).SeesAll(s.members(g.Name)...)
	})
	return &groupsOutput{api.GroupList{Groups: list}}, nil
}

// members returns the hosts of a group of the inventory.
func (s GroupRoutes) members(group string) []string {
	return s.hostsWith(func(h fleet.Host) bool { return h.Group == group })
}

// hostsWith returns the names of some hosts of the inventory.
func (s GroupRoutes) hostsWith(has func(h fleet.Host) bool) []string {
	now := s.Stock.Now()
	if now == nil {
		return nil
	}
	return stock.Names(now.Hosts(), has)
}

// clearGroup clears a group at the word of a person who has looked at it.
func (s GroupRoutes) clearGroup(ctx context.Context, in *groupOrder) (*clearedOutput, error) {
	if err := s.mayClear(ctx, in.Group); err != nil {
		return nil, err
	}
	g, wrong := in.Reasoned("cleared")
	wrong = append(wrong, web.Mistakes("path.group", fleet.CheckName(in.Group))...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	did, err := s.Exclusion.ClearGroup(ctx, in.Group, g.Note())
	if zone, known := s.zoneOf(in.Group); known && errors.Is(err, queue.ErrNotFound) {
		did = jobs.Cleared{Group: in.Group, Zone: zone, Already: true}
		err = s.Exclusion.ClearMarkers(ctx, zone, in.Group, g.Note())
	}
	if err != nil {
		return nil, noGroup(err, in.Group)
	}
	web.LogOrder(s.Log, "group cleared", g, "group", in.Group, "already", did.Already, "was", did.Was,
		"job", did.Job)
	return &clearedOutput{did}, nil
}

func noGroup(err error, group string) error {
	return web.NotThere(err, "there is no group %q; `muster hosts` names them", group)
}

// mayClear returns the answer that refuses to clear a group; nil: the caller may. A group of which
// the caller does not see all hosts is not there.
func (s GroupRoutes) mayClear(ctx context.Context, group string) error {
	v, order, hosts := web.ViewOf(ctx), access.Act{Verb: access.Order}, s.members(group)
	switch {
	case v.May(order):
		return nil
	case !v.SeesAll(hosts...):
		return noGroup(queue.ErrNotFound, group)
	}
	return v.Refuse(order, hosts)
}

// zoneOf returns the zone of a group of the inventory. The queue knows only the groups that are in
// use or frozen.
func (s GroupRoutes) zoneOf(group string) (zone string, known bool) {
	if st := s.Stock.Now(); st != nil {
		for _, h := range st.Hosts() {
			if h.Group == group {
				return h.Zone, true
			}
		}
	}
	return "", false
}

// limits lists the limits of the inventory and who counts against them.
func (s GroupRoutes) limits(ctx context.Context, _ *web.Nothing) (*limitsOutput, error) {
	list, err := s.Groups.Limits(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	if list == nil {
		list = []jobs.Limit{}
	}
	v := web.ViewOf(ctx)
	list = slices.DeleteFunc(list, func(l jobs.Limit) bool { return !s.seesLimit(v, l) })
	for i := range list {
		if list[i].Holders == nil {
			list[i].Holders = []jobs.ID{}
		}
	}
	return &limitsOutput{api.LimitList{Limits: list}}, nil
}

// seesLimit reports whether a caller sees a limit: all hosts that it covers, and those of its
// holders, which may count by the needs of their runbook.
func (s GroupRoutes) seesLimit(v *web.View, l jobs.Limit) bool {
	covered := s.hostsWith(func(h fleet.Host) bool {
		return (l.Zone == "" || h.Zone == l.Zone) && fleet.Limit{Name: l.Name}.Covers(h)
	})
	for _, id := range l.Holders {
		if !v.SeesAll(id.Host()) {
			return false
		}
	}
	return v.SeesAll(covered...)
}
