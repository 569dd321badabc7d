package state

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/server/stock"
	"muster/server/web"
)

type (
	pausesInput struct {
		Task  string `query:"task" doc:"only orders that keep jobs of this task from starting"`
		Tasks bool   `query:"tasks" doc:"with the paused ones of the newest tasks"`
		Zones string `query:"zones" doc:"only what stops all jobs of these zones (a,b)"`
	}
	pausesOutput struct{ Body api.PauseList }
)

// PauseRoutes lists the pauses and the halt.
type PauseRoutes struct {
	Queue  Queue
	Stock  *stock.Store
	Agreed *Agreement
	PauseRights
}

// Routes registers the routes of the resource.
func (s PauseRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/pauses", "Show pauses, halt and freezes in force"), s.pauses)
}

func (s PauseRoutes) pauses(ctx context.Context, in *pausesInput) (*pausesOutput, error) {
	err := s.PauseRights.there(ctx, in.Task)
	var list api.PauseList
	if err == nil {
		list, err = s.standing(ctx, in)
	}
	if err == nil && in.Task == "" && in.Zones != "" {
		list.NoNode, err = noNodeIn(ctx, s.Queue, strings.Split(in.Zones, ","))
		ofZones(&list, strings.Split(in.Zones, ","))
	} else if err == nil {
		list.NoNode, err = noNode(ctx, s.Queue, s.Stock, in.Task)
	}
	if err == nil {
		err = s.limit(ctx, &list)
	}
	if err != nil {
		return nil, web.Problem(err)
	}
	return &pausesOutput{list}, nil
}

// ofZones leaves in a list what keeps all jobs of some zones from starting.
func ofZones(l *api.PauseList, zones []string) {
	l.Tasks, l.Customers, l.History = map[jobs.TaskID]string{}, map[string]string{}, nil
	maps.DeleteFunc(l.Zones, func(zone, _ string) bool { return !slices.Contains(zones, zone) })
}

// All lists everything that is paused by order of an operator, with the tasks.
func (s PauseRoutes) All(ctx context.Context) (api.PauseList, error) {
	return s.standing(ctx, &pausesInput{Tasks: true})
}

// pausedTasks bounds the newest tasks among which standing looks for paused ones.
const pausedTasks = 100

// standing lists everything that is paused by order of an operator.
func (s PauseRoutes) standing(ctx context.Context, in *pausesInput) (api.PauseList, error) {
	out := api.PauseList{Tasks: map[jobs.TaskID]string{}, NoNode: map[string]string{}}
	var err error
	if out.Pauses, err = s.Queue.Halts.Pauses(ctx); err != nil {
		return out, err
	}
	if out.Zones == nil {
		out.Zones = map[string]string{}
	}
	if out.Customers == nil {
		out.Customers = map[string]string{}
	}
	if in.Task != "" {
		return out, s.concern(ctx, in.Task, &out)
	}
	if out.History, err = Away(ctx, s.Queue, s.Agreed.History); err != nil {
		return out, err
	}
	if out.Lost, err = s.Agreed.note(ctx); err != nil {
		return out, err
	}
	if !in.Tasks {
		return out, nil
	}
	list, err := s.Queue.Tasks.Tasks(ctx, pausedTasks)
	for _, t := range list {
		if t.Paused != "" && t.State != jobs.TaskEnded {
			out.Tasks[t.Task] = t.Paused
		}
		if t.State == jobs.TaskStopped {
			out.Tasks[t.Task] = "stopped: " + t.Rollout.Stopped
		}
	}
	return out, err
}

// concern removes the pauses that keep no job of a task from starting.
func (s PauseRoutes) concern(ctx context.Context, task string, out *api.PauseList) error {
	id, err := jobs.ParseTaskID(task)
	if err != nil {
		return web.Refusal(web.Mistakes("query.task", err))
	}
	t, err := s.Queue.Tasks.Task(ctx, id)
	if err != nil {
		return err
	}
	if t.Paused != "" {
		out.Tasks[id] = t.Paused
	}
	if t.State == jobs.TaskStopped {
		out.Tasks[id] = "stopped: " + t.Rollout.Stopped
	}
	for zone := range out.Zones {
		if !slices.Contains(t.Zones, zone) {
			delete(out.Zones, zone)
		}
	}
	if len(out.Customers) == 0 {
		return nil
	}
	of := map[string]bool{}
	err = s.Queue.Jobs.EachJob(ctx, id, 0, web.JobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			if j.State != jobs.Ended {
				of[s.customer(j.Host)] = true
			}
		}
		return nil
	})
	for customer := range out.Customers {
		if !of[customer] {
			delete(out.Customers, customer)
		}
	}
	return err
}

// customer returns the customer of a host; empty if it has none or is not in the inventory.
func (s PauseRoutes) customer(host string) string {
	if st := s.Stock.Now(); st != nil {
		if h, ok := st.Host(host); ok {
			return h.Customer
		}
	}
	return ""
}
