package books

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server/duties"
	"muster/server/web"
)

type (
	factsInput struct {
		On string `query:"on" default:"all" doc:"selector; all hosts if there is none"`
	}
	factsOutput struct{ Body api.FactList }
	gatherInput struct {
		Task string `path:"task"`
	}
	gatherOutput struct{ Body api.Gathered }
)

// FactRoutes shows the facts of hosts, and keeps those that a task gathered.
type FactRoutes struct {
	Kept    Facts
	Tasks   Tasks
	Duty    *duties.Facts
	HostsOn func(ctx context.Context, selector string) ([]fleet.Host, error)
	Now     func() time.Time
	Stale   time.Duration // the age from which facts count as old
}

// Routes registers the routes of the resource.
func (s FactRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/facts",
		"List what hosts said of themselves"),
		s.facts)
	huma.Register(api, web.Post("/v1/tasks/{task}/facts",
		"Keep the facts that a task gathered"), s.gather)
}

// facts answers GET /v1/facts.
func (s FactRoutes) facts(ctx context.Context, in *factsInput) (*factsOutput, error) {
	hosts, err := s.HostsOn(ctx, in.On)
	if err != nil {
		return nil, err
	}
	all, _, err := s.Kept.Facts(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &factsOutput{api.FactList{Hosts: []api.HostFacts{}}}
	var none []string
	for _, h := range hosts {
		f, ok := all[h.Name]
		if !ok {
			none = append(none, h.Name)
			continue
		}
		age := s.Now().Sub(f.At.Time)
		out.Body.Hosts = append(out.Body.Hosts, api.HostFacts{HostFacts: f,
			Age: age.Seconds(), Stale: age > s.Stale})
	}
	out.Body.None = fleet.Fold(none)
	return out, nil
}

// gather answers POST /v1/tasks/{task}/facts.
func (s FactRoutes) gather(ctx context.Context, in *gatherInput) (*gatherOutput, error) {
	id, err := jobs.ParseTaskID(in.Task)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("path.task", err))
	}
	t, err := s.Tasks.Task(ctx, id)
	if err != nil {
		return nil, web.Problem(err)
	}
	if t.Runbook != duties.FactsRunbook {
		return nil, web.Refusal([]error{web.Mistake("path.task", "task %s ran %s: only %s brings facts",
			id,
			t.Runbook, duties.FactsRunbook)})
	}
	out, err := s.Duty.Keep(ctx, t)
	if err != nil {
		return nil, web.Problem(err)
	}
	return &gatherOutput{out}, nil
}
