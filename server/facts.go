package server

import (
	"context"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server/duties"
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

// facts answers GET /v1/facts.
func (s *Server) facts(ctx context.Context, in *factsInput) (*factsOutput, error) {
	hosts, err := s.hostsOn(ctx, in.On)
	if err != nil {
		return nil, err
	}
	all, _, err := s.queue.Hub.Facts.Facts(ctx)
	if err != nil {
		return nil, problem(err)
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
			Age: age.Seconds(), Stale: age > s.cfg.FactsStale})
	}
	out.Body.None = fleet.Fold(none)
	return out, nil
}

// hostsOn is which hosts a selector in a query picks, drained ones too.
func (s *Server) hostsOn(ctx context.Context, on string) ([]fleet.Host, error) {
	out, err := s.listHosts(ctx, api.HostQuery{On: on, Drained: true}, "query.on")
	if err != nil {
		return nil, err
	}
	return out.Body.Hosts, nil
}

// gather answers POST /v1/tasks/{task}/facts.
func (s *Server) gather(ctx context.Context, in *gatherInput) (*gatherOutput, error) {
	id, err := jobs.ParseTaskID(in.Task)
	if err != nil {
		return nil, refusal(mistakes("path.task", err))
	}
	t, err := s.queue.Read.Tasks.Task(ctx, id)
	if err != nil {
		return nil, problem(err)
	}
	if t.Runbook != duties.FactsRunbook {
		return nil, refusal([]error{mistake("path.task", "task %s ran %s: only %s brings facts", id,
			t.Runbook, duties.FactsRunbook)})
	}
	out, err := s.tend.Facts.Keep(ctx, t)
	if err != nil {
		return nil, problem(err)
	}
	return &gatherOutput{out}, nil
}
