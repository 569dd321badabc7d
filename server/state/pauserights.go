package state

import (
	"context"
	"fmt"
	"maps"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/web"
)

// PauseRights says which pauses a caller sees.
type PauseRights struct {
	// Sees reports whether the caller of a context sees a task.
	Sees func(ctx context.Context, id jobs.TaskID, host string) (bool, error)
	// Seen returns those tasks of a list that the caller sees.
	Seen func(ctx context.Context, list []jobs.TaskInfo) ([]jobs.TaskInfo, error)
	// Near returns the zones of the hosts that a view shows.
	Near func(v *web.View) map[string]bool
}

// there returns an error if the caller does not see a task. Without one, and with a text that is
// no id, it returns nil.
func (r PauseRights) there(ctx context.Context, task string) error {
	id, err := jobs.ParseTaskID(task)
	if task == "" || err != nil {
		return nil
	}
	if seen, err := r.Sees(ctx, id, ""); err != nil || seen {
		return err
	}
	return fmt.Errorf("task %s: %w", id, queue.ErrNotFound)
}

// limit leaves in a list of pauses those that concern hosts that the caller sees. The halt concerns
// all. The state of history and the lost agreements name things of the whole house, so that nothing
// is left of them but the word that nothing starts.
func (s PauseRoutes) limit(ctx context.Context, l *api.PauseList) error {
	v := web.ViewOf(ctx)
	if v.All() {
		return nil
	}
	near := s.Near(v)
	far := func(zone, _ string) bool { return !near[zone] }
	maps.DeleteFunc(l.Zones, far)
	maps.DeleteFunc(l.NoNode, far)
	of := map[string]bool{}
	if now := s.Stock.Now(); now != nil {
		for _, h := range now.Hosts() {
			of[h.Customer] = of[h.Customer] || v.Sees(h.Name)
		}
	}
	maps.DeleteFunc(l.Customers, func(customer, _ string) bool { return !of[customer] })
	if l.History = nil; l.Lost != "" {
		l.Lost = "Redis has lost some of what was agreed: nothing starts before an admin restores it"
	}
	var list []jobs.TaskInfo
	for id := range l.Tasks {
		list = append(list, jobs.TaskInfo{Task: id})
	}
	list, err := s.Seen(ctx, list)
	seen := map[jobs.TaskID]string{}
	for _, t := range list {
		seen[t.Task] = l.Tasks[t.Task]
	}
	l.Tasks = seen
	return err
}
