package server

import (
	"context"
	"slices"

	"muster/fleet"
	"muster/jobs"
)

// Drains keep hosts out of selections. hosts are by zone.
type Drains interface {
	Drain(ctx context.Context, hosts map[string][]string, note string) (changed []string, err error)
	Undrain(ctx context.Context, hosts map[string][]string, note string) (changed []string, err error)
	Drained(ctx context.Context) (map[string]jobs.Drain, error)
	ReleaseHost(ctx context.Context, zone, host, note string) (jobs.Released, error)
	HostWork(ctx context.Context, zone, host string, tasks int) (jobs.HostWork, error)
}

// DrainRequest is the body of POST /v1/hosts/drain and /v1/hosts/undrain.
type DrainRequest struct {
	OrderRequest
	On string `json:"on"` // selector
}

// DrainAnswer is what a drain or undrain did.
type DrainAnswer struct {
	Changed string `json:"changed"` // hosts, folded: they were not so before
	Already string `json:"already"` // hosts, folded: they were so before
	Count   int    `json:"count"`   // hosts that changed
	Note    string `json:"note"`    // who and why
	// Labelled are hosts, folded, that are drained by a label of the inventory, which
	// only the inventory can end.
	Labelled string `json:"labelled,omitempty"`
	// Open are jobs of earlier tasks on the drained hosts, which go on: as far as they
	// were looked for.
	Open []jobs.ID `json:"open"`
}

type (
	drainInput struct {
		Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body DrainRequest
	}
	drainOutput struct{ Body DrainAnswer }
)

// drain lets selections leave hosts out. What has been submitted goes on.
func (s *Server) drain(ctx context.Context, in *drainInput) (*drainOutput, error) {
	return s.turnHosts(ctx, in, "drained", s.queue.Drain)
}

func (s *Server) undrain(ctx context.Context, in *drainInput) (*drainOutput, error) {
	return s.turnHosts(ctx, in, "undrained", s.queue.Undrain)
}

func (s *Server) turnHosts(ctx context.Context, in *drainInput, done string,
	do func(context.Context, map[string][]string, string) ([]string, error)) (*drainOutput, error) {
	g, wrong := in.Body.giver(done, in.who, in.User)
	v, err := s.scene(ctx, in.Body.On)
	if err != nil {
		return nil, problem(err)
	}
	hosts, err := v.choose(in.Body.On)
	if wrong = append(wrong, mistakes("body.on", err)...); len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	changed, err := do(ctx, zonesOf(hosts), g.note())
	if err != nil {
		return nil, problem(err)
	}
	already := namesOf(hosts, func(h fleet.Host) bool { return !slices.Contains(changed, h.Name) })
	out := &drainOutput{DrainAnswer{Changed: fleet.Fold(changed), Already: fleet.Fold(already),
		Count: len(changed), Note: g.note(), Labelled: fleet.Fold(undrainable(hosts)), Open: []jobs.ID{}}}
	s.logOrder("hosts "+done, g, "hosts", brief(out.Body.Changed), "already", brief(out.Body.Already))
	if done == "drained" {
		out.Body.Open, err = s.openOn(ctx, hosts)
	}
	return out, problem(err)
}

// choose picks hosts whether they are drained or not.
func (v scene) choose(on string) ([]fleet.Host, error) {
	sel, err := v.parse(on)
	if err != nil {
		return nil, err
	}
	return v.Select(sel)
}

// hostsLooked is of how many drained hosts the open jobs are looked for.
const hostsLooked = 50

// openOn finds jobs of hosts that have not ended.
func (s *Server) openOn(ctx context.Context, hosts []fleet.Host) ([]jobs.ID, error) {
	open := []jobs.ID{}
	for _, h := range hosts[:min(len(hosts), hostsLooked)] {
		w, err := s.queue.HostWork(ctx, h.Zone, h.Name, tasksLooked)
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
