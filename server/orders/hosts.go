package orders

import (
	"context"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/api"
	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/quarantine"
	"muster/server/stock"
	"muster/server/web"
)

// Drains keeps the hosts that selections leave out.
type Drains interface {
	Drain(ctx context.Context, hosts map[string][]string, note string) (changed []string, err error)
	Undrain(ctx context.Context, hosts map[string][]string, note string) (changed []string, err error)
	Drained(ctx context.Context) (map[string]jobs.Drain, error)
	Quarantine(ctx context.Context, verb string, hosts map[string][]string, note string) (
		changed []string, err error)
	Quarantined(ctx context.Context) (map[string]quarantine.Mark, error)
}

type (
	drainInput struct {
		web.Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body api.DrainRequest
	}
	drainOutput struct{ Body api.DrainAnswer }
)

// HostRoutes answers orders about hosts: to drain them, and to release them from a job.
type HostRoutes struct {
	Drains    Drains
	Exclusion Exclusion
	Waits     Work
	Look      *stock.Looker
	Log       hclog.Logger
	Whole     func(context.Context) error // see web.WhileAgreed
}

// Routes registers the routes of the resource.
func (s HostRoutes) Routes(api huma.API) {
	for path, does := range map[string]struct {
		what string
		do   func(context.Context, *drainInput) (*drainOutput, error)
	}{
		"/v1/hosts/drain": {"Let selections leave hosts out", web.WhileAgreed(s.Whole, s.drain)},
		"/v1/hosts/undrain": {"Let selections pick hosts again",
			web.WhileAgreed(s.Whole, s.undrain)},
		"/v1/hosts/quarantine":   {"Let hosts take no job but checks", s.quarantine},
		"/v1/hosts/unquarantine": {"Let hosts take every job again", s.unquarantine},
	} {
		o := web.Post(path, does.what)
		o.MaxBodyBytes = web.SubmitMax
		huma.Register(api, o, does.do)
	}
	release := web.Post("/v1/hosts/{host}/release", "Give a locked host back")
	huma.Register(api, release, s.release)
	huma.Register(api, web.Get("/v1/quarantine", "List hosts that take no job but checks"), s.aside)
}

// drain lets selections leave hosts out. Submitted jobs continue.
func (s HostRoutes) drain(ctx context.Context, in *drainInput) (*drainOutput, error) {
	return s.turnHosts(ctx, in, "drained", s.Drains.Drain)
}

func (s HostRoutes) undrain(ctx context.Context, in *drainInput) (*drainOutput, error) {
	return s.turnHosts(ctx, in, "undrained", s.Drains.Undrain)
}

func (s HostRoutes) turnHosts(ctx context.Context, in *drainInput, done string,
	do func(context.Context, map[string][]string, string) ([]string, error)) (*drainOutput, error) {
	g, wrong := web.GiverOf(in.Body.OrderRequest, done, in.Caller(), in.User)
	v, err := s.Look.Scene(ctx, in.Body.On)
	if err != nil {
		return nil, web.Problem(err)
	}
	hosts, err := v.Choose(in.Body.On)
	if wrong = append(wrong, web.Mistakes("body.on", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	all := stock.Names(hosts, func(fleet.Host) bool { return true })
	if err := web.ViewOf(ctx).Refuse(access.Act{Verb: access.Order}, all); err != nil {
		return nil, err
	}
	changed, err := do(ctx, zonesOf(hosts), g.Note())
	if err != nil {
		return nil, web.Problem(err)
	}
	already := stock.Names(hosts, func(h fleet.Host) bool { return !slices.Contains(changed, h.Name) })
	out := &drainOutput{api.DrainAnswer{Changed: fleet.Fold(changed), Already: fleet.Fold(already),
		Count: len(changed), Note: g.Note(), Labelled: fleet.Fold(undrainable(hosts)), Open: []jobs.ID{}}}
	web.LogOrder(s.Log, "hosts "+done, g, "hosts", wording.ClipList(out.Body.Changed),
		"already", wording.ClipList(out.Body.Already))
	if done == "drained" || done == setAside {
		out.Body.Open, err = s.openOn(ctx, hosts)
	}
	return out, web.Problem(err)
}

// hostsLooked bounds the drained hosts whose open jobs an answer lists.
const hostsLooked = 50

// openOn finds jobs of hosts that have not ended.
func (s HostRoutes) openOn(ctx context.Context, hosts []fleet.Host) ([]jobs.ID, error) {
	open := []jobs.ID{}
	for _, h := range hosts[:min(len(hosts), hostsLooked)] {
		w, err := s.Waits.HostWork(ctx, h.Zone, h.Name, stock.TasksLooked)
		if err != nil {
			return open, err
		}
		for _, j := range w.Jobs {
			if j.State != jobs.Ended {
				open = append(open, j.ID)
			}
		}
	}
	return open, nil
}

// undrainable returns the names of hosts that are drained by a label of the inventory.
func undrainable(hosts []fleet.Host) []string {
	var names []string
	for _, h := range hosts {
		if _, labelled := h.Labels[fleet.Drained]; labelled {
			names = append(names, h.Name)
		}
	}
	return names
}

// zonesOf sorts hosts by their zones.
func zonesOf(hosts []fleet.Host) map[string][]string {
	zones := map[string][]string{}
	for _, h := range hosts {
		zones[h.Zone] = append(zones[h.Zone], h.Name)
	}
	return zones
}
