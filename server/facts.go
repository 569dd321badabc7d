package server

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

// factRoutes shows what hosts said of themselves, and keeps what a task gathered.
type factRoutes struct {
	kept    Facts
	tasks   Tasks
	duty    *duties.Facts
	hostsOn func(ctx context.Context, selector string) ([]fleet.Host, error)
	now     func() time.Time
	stale   time.Duration
}

func (s factRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/facts",
		"List what hosts said of themselves"),
		s.facts)
	huma.Register(api, web.Post("/v1/tasks/{task}/facts",
		"Keep the facts that a task gathered"), s.gather)
}

// facts answers GET /v1/facts.
func (s factRoutes) facts(ctx context.Context, in *factsInput) (*factsOutput, error) {
	hosts, err := s.hostsOn(ctx, in.On)
	if err != nil {
		return nil, err
	}
	all, _, err := s.kept.Facts(ctx)
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
		age := s.now().Sub(f.At.Time)
		out.Body.Hosts = append(out.Body.Hosts, api.HostFacts{HostFacts: f,
			Age: age.Seconds(), Stale: age > s.stale})
	}
	out.Body.None = fleet.Fold(none)
	return out, nil
}

// gather answers POST /v1/tasks/{task}/facts.
func (s factRoutes) gather(ctx context.Context, in *gatherInput) (*gatherOutput, error) {
	id, err := jobs.ParseTaskID(in.Task)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("path.task", err))
	}
	t, err := s.tasks.Task(ctx, id)
	if err != nil {
		return nil, web.Problem(err)
	}
	if t.Runbook != duties.FactsRunbook {
		return nil, web.Refusal([]error{web.Mistake("path.task", "task %s ran %s: only %s brings facts",
			id,
			t.Runbook, duties.FactsRunbook)})
	}
	out, err := s.duty.Keep(ctx, t)
	if err != nil {
		return nil, web.Problem(err)
	}
	return &gatherOutput{out}, nil
}
