package books

import (
	"context"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server/stock"
	"muster/server/web"
)

type (
	hostsInput struct {
		On      string `query:"on" doc:"selector of the hosts; empty: all hosts, drained ones too"`
		Cursor  string `query:"cursor" doc:"the field next of the page before"`
		Limit   int    `query:"limit" minimum:"0" maximum:"5000" doc:"most hosts of a page; 0: all"`
		Fold    bool   `query:"fold" doc:"add all names, folded"`
		Drained bool   `query:"drained" doc:"with drained hosts, whatever the selector"`
	}
	hostsOutput    struct{ Body api.HostList }
	hostQueryInput struct{ Body api.HostQuery }
	hostInput      struct {
		Host string `path:"host"`
	}
	hostOutput struct{ Body api.HostInfo }
)

// HostRoutes shows the hosts of the inventory.
type HostRoutes struct {
	Stock *stock.Store
	Look  *stock.Looker
	Waits Work

	// SeenJobs returns those jobs of a list that the caller may see.
	SeenJobs func(ctx context.Context, list []jobs.JobInfo) ([]jobs.JobInfo, error)
}

// Routes registers the routes of the resource.
func (s HostRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/hosts", "List hosts"), s.hosts)
	huma.Register(api, web.Get("/v1/hosts/{host}", "Show a host"), s.host)
	query := web.Post("/v1/hosts/query", "List hosts, by a long selector")
	query.MaxBodyBytes = web.SubmitMax
	huma.Register(api, query, s.queryHosts)
	huma.Register(api, web.Get("/v1/inventory", "Show the inventory in force"), s.inventory)
}

func (s HostRoutes) hosts(ctx context.Context, in *hostsInput) (*hostsOutput, error) {
	return s.listHosts(ctx, api.HostQuery(*in), "query.on")
}

func (s HostRoutes) queryHosts(ctx context.Context, in *hostQueryInput) (*hostsOutput, error) {
	return s.listHosts(ctx, in.Body, "body.on")
}

func (s HostRoutes) listHosts(ctx context.Context, q api.HostQuery, where string) (*hostsOutput,
	error) {
	v, err := s.Look.Scene(ctx, q.On)
	if err != nil {
		return nil, web.Problem(err)
	}
	if v.Stock == nil {
		return nil, web.Refusal(web.Mistakes(where, stock.ErrNone))
	}
	picked := fleet.Picked{}
	switch {
	case q.On == "":
		picked.Hosts = v.Hosts()
	case q.Drained:
		picked.Hosts, err = v.Choose(q.On)
	default:
		picked, err = v.PickFor(q.On)
	}
	if err != nil {
		return nil, web.Refusal(web.Mistakes(where, err))
	}
	out := &hostsOutput{page(v, q, picked)}
	out.Body.Unfenced, err = s.Look.Unfenced(ctx, v.Stock, out.Body.Hosts)
	return out, web.Problem(err)
}

// page returns the part of the picked hosts that a query asks for.
func page(v stock.Scene, q api.HostQuery, picked fleet.Picked) api.HostList {
	l := api.HostList{Version: v.Version, Total: len(picked.Hosts), LeftOut: stock.LeftOut(picked)}
	byName := func(h fleet.Host, name string) int { return strings.Compare(h.Name, name) }
	from, found := slices.BinarySearchFunc(picked.Hosts, q.Cursor, byName)
	if found {
		from++
	}
	l.Hosts = picked.Hosts[from:]
	if q.Limit > 0 && len(l.Hosts) > q.Limit {
		l.Hosts = l.Hosts[:q.Limit]
		l.Next = l.Hosts[q.Limit-1].Name
	}
	if q.Fold && q.Cursor == "" {
		l.Folded = fleet.Fold(stock.Names(picked.Hosts, func(fleet.Host) bool { return true }))
	}
	l.Drained = map[string]jobs.Drain{}
	for _, h := range l.Hosts {
		if _, labelled := h.Labels[fleet.Drained]; labelled {
			l.Drained[h.Name] = jobs.Drain{}
		}
		if d, drained := v.Drained[h.Name]; drained {
			l.Drained[h.Name] = d
		}
	}
	return l
}

func (s HostRoutes) host(ctx context.Context, in *hostInput) (*hostOutput, error) {
	v, err := s.Look.Scene(ctx, "")
	if err != nil {
		return nil, web.Problem(err)
	}
	if v.Stock == nil {
		return nil, web.Refusal(web.Mistakes("path.host", stock.ErrNone))
	}
	h, known := v.Host(in.Host)
	if !known {
		return nil, huma.Error404NotFound(v.Unknown(in.Host))
	}
	out := &hostOutput{api.HostInfo{Host: h, Inventory: v.Version, Limits: fleet.Needs(h,
		v.Limits())}}
	if out.Body.Limits == nil {
		out.Body.Limits = []string{}
	}
	_, out.Body.IsDrained = h.Labels[fleet.Drained]
	if d, drained := v.Drained[h.Name]; drained {
		out.Body.IsDrained, out.Body.Drained = true, &d
	}
	unfenced, err := s.Look.Unfenced(ctx, v.Stock, []fleet.Host{h})
	if err != nil {
		return nil, web.Problem(err)
	}
	out.Body.Unfenced = unfenced[h.Name]
	work, err := s.Waits.HostWork(ctx, h.Zone, h.Name, stock.TasksLooked)
	if err == nil {
		work.Jobs, err = s.SeenJobs(ctx, work.Jobs)
	}
	out.Body.HostWork = work
	return out, web.Problem(err)
}

// HostsOn returns the hosts that a selector in a query picks, drained ones too.
func (s HostRoutes) HostsOn(ctx context.Context, on string) ([]fleet.Host, error) {
	out, err := s.listHosts(ctx, api.HostQuery{On: on, Drained: true}, "query.on")
	if err != nil {
		return nil, err
	}
	return out.Body.Hosts, nil
}
