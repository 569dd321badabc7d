package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
)

const (
	// factsRunbook is the built-in one whose results are kept.
	factsRunbook = "facts"
	// factsTasks is how many of the newest tasks a server looks at for such.
	factsTasks = 100
	// factsForget is how long facts stay of a host that is in the inventory no more.
	factsForget = 30 * 24 * time.Hour
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
	if t.Runbook != factsRunbook {
		return nil, refusal([]error{mistake("path.task", "task %s ran %s: only %s brings facts", id,
			t.Runbook, factsRunbook)})
	}
	out, err := s.keepFacts(ctx, t, nil)
	if err != nil {
		return nil, problem(err)
	}
	return &gatherOutput{out}, nil
}

// factsSeen is what a server has kept of tasks that gathered facts: of each the jobs, as
// long as it has not ended. It is for the duties.
type factsSeen map[jobs.TaskID]map[jobs.ID]bool

// tendFacts keeps what tasks have gathered since the last round. Every server does it:
// the same facts are not kept twice.
func (s *Server) tendFacts(ctx context.Context) error {
	list, err := s.queue.Read.Tasks.Tasks(ctx, factsTasks)
	if err != nil {
		return err
	}
	for id := range s.seen {
		if !slices.ContainsFunc(list, func(t jobs.TaskInfo) bool { return t.Task == id }) {
			delete(s.seen, id)
		}
	}
	for _, t := range list {
		if t.Runbook != factsRunbook || s.now().Sub(t.Submitted.Time) > partsKept {
			continue
		}
		seen := s.seen[t.Task]
		if seen == nil {
			seen = map[jobs.ID]bool{}
			s.seen[t.Task] = seen
		}
		if t.Outcomes[jobs.Succeeded] <= len(seen) {
			continue
		}
		got, err := s.keepFacts(ctx, t, seen)
		if err != nil {
			return err
		}
		for _, bad := range got.Bad {
			s.log.Warn("facts not kept", "task", t.Task, "host", bad.Host, "error", bad.Error)
		}
	}
	return nil
}

// keepFacts keeps what the jobs of a task have gathered that succeeded, but for those
// that were seen.
func (s *Server) keepFacts(ctx context.Context, t jobs.TaskInfo, seen map[jobs.ID]bool) (
	api.Gathered, error) {
	out := api.Gathered{Task: t.Task, Bad: []api.BadFacts{}}
	err := s.queue.Read.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		var ids []jobs.ID
		of := map[jobs.ID]jobs.JobInfo{}
		for _, j := range chunk {
			if j.Outcome == jobs.Succeeded && !seen[j.ID] {
				ids = append(ids, j.ID)
				of[j.ID] = j
			}
		}
		if len(ids) == 0 {
			return nil
		}
		said, err := s.outputs(ctx, t.Zones, ids)
		if err != nil {
			return err
		}
		var list []jobs.HostFacts
		for _, id := range ids {
			j := of[id]
			facts, err := fleet.ParseFacts(said[id], j.Started.Time, j.Finished.Time)
			if err != nil {
				out.Bad = append(out.Bad, api.BadFacts{Host: j.Host, Error: err.Error()})
				continue
			}
			list = append(list, jobs.HostFacts{Host: j.Host, At: j.Finished, Task: t.Task,
				Inventory: t.Inventory, Facts: facts})
		}
		if _, err := s.queue.Hub.Facts.SaveFacts(ctx, list); err != nil {
			return err
		}
		out.Kept += len(list)
		for _, id := range ids {
			if seen != nil {
				seen[id] = true
			}
		}
		return nil
	})
	return out, err
}

// forgetFacts removes those of hosts that left the inventory long ago.
func (s *Server) forgetFacts(ctx context.Context) error {
	st := s.stock.Now()
	if st == nil {
		return nil
	}
	all, _, err := s.queue.Hub.Facts.Facts(ctx)
	if err != nil {
		return err
	}
	var gone []string
	for host, f := range all {
		if _, there := st.Host(host); !there && s.now().Sub(f.At.Time) > factsForget {
			gone = append(gone, host)
		}
	}
	if err := s.queue.Hub.Facts.ForgetFacts(ctx, gone); err != nil {
		return fmt.Errorf("facts of hosts that are gone: %w", err)
	}
	return nil
}
