package server

import (
	"context"
	"errors"
	"slices"
	"sync"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue"
)

// told is what is wrong with history, by the server that writes it.
type told struct {
	mu    sync.Mutex
	words string
}

func (t *told) set(words string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.words = words
}

// forget is when another server has the duty.
func (t *told) forget() { t.set("") }

func (t *told) get() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.words
}

// tasksKept is how many tasks a historian remembers.
const tasksKept = 1000

// fresh is a task as Redis knows it now; empty if it does not any more.
func (h *historian) fresh(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	t, err := h.queue.Read.Tasks.Task(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		return jobs.TaskInfo{}, nil
	}
	if err != nil {
		return t, err
	}
	if len(h.tasks) >= tasksKept {
		clear(h.tasks)
	}
	h.tasks[id] = t
	return t, nil
}

// known is a task as Redis knows it now, and tells whether history shall have it so: a day
// after the end of a task Redis knows its name still, but no number of its hosts any more.
func (h *historian) known(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, bool, error) {
	t, err := h.fresh(ctx, id)
	if err != nil || t.Task == "" || t.Total > 0 || t.State == jobs.TaskSubmitting {
		return t, t.Task != "", err
	}
	switch _, err := h.history.Task(ctx, id); {
	case errors.Is(err, history.ErrNotFound):
		return t, true, nil // it is all that there is to say
	default:
		return t, false, err
	}
}

// task is what was asked for; empty if nobody knows it any more.
func (h *historian) task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	if t, ok := h.tasks[id]; ok {
		return t, nil
	}
	t, err := h.fresh(ctx, id)
	if err != nil || t.Task != "" {
		return t, err
	}
	t, err = h.history.Task(ctx, id)
	if errors.Is(err, history.ErrNotFound) {
		t, err = jobs.TaskInfo{Task: id}, nil
	}
	if err == nil {
		h.tasks[id] = t
	}
	return t, err
}

// zonesOf is task for who wants to know its zones: one that nobody knew may be known by now.
func (h *historian) zonesOf(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	t, err := h.task(ctx, id)
	if err == nil && len(t.Zones) == 0 {
		delete(h.tasks, id)
		return h.task(ctx, id)
	}
	return t, err
}

// endsMax is how many jobs are read at once.
const endsMax = 500

// ends finds what Redis knows of jobs that have ended. What it has forgotten is taken
// from the event.
func (h *historian) ends(ctx context.Context, zone string, list []jobs.Happening) (
	[]api.PastJob, error) {
	byTask := map[jobs.TaskID][]jobs.Happening{}
	for _, e := range list {
		id := jobs.ID(e.Object).Task()
		byTask[id] = append(byTask[id], e)
	}
	var out []api.PastJob
	for id, events := range byTask {
		t, err := h.task(ctx, id)
		if err != nil {
			return nil, err
		}
		for part := range slices.Chunk(events, endsMax) {
			ids := make([]jobs.ID, len(part))
			for i, e := range part {
				ids[i] = jobs.ID(e.Object)
			}
			found, err := h.queue.Read.Jobs.JobsIn(ctx, zone, ids)
			if err != nil {
				return nil, err
			}
			for i, j := range found {
				if j.State != jobs.Ended {
					found[i] = history.EndOf(part[i])
				}
			}
			jobs, err := h.complete(ctx, zone, t, found)
			if err != nil {
				return nil, err
			}
			out = append(out, jobs...)
		}
	}
	return out, nil
}

// complete adds to jobs of one zone what their hosts said, and whose they are.
func (h *historian) complete(ctx context.Context, zone string, t jobs.TaskInfo,
	list []jobs.JobInfo) ([]api.PastJob, error) {
	ids := make([]jobs.ID, len(list))
	for i, j := range list {
		ids[i] = j.ID
	}
	said, err := h.queue.Read.Outputs.Outputs(ctx, zone, ids)
	if err != nil {
		return nil, err
	}
	stock := h.stock.current.Load()
	out := make([]api.PastJob, len(list))
	for i, j := range list {
		out[i] = api.PastJob{JobInfo: j, Zone: zone, Runbook: t.Runbook, Operator: t.Operator,
			Output: said[j.ID], Asked: &api.Asked{On: t.On, Proven: t.Proven, Reason: t.Reason,
				Ran: t.Ran}}
		if stock == nil {
			continue
		}
		if host, ok := stock.Host(j.Host); ok {
			out[i].Customer, out[i].Model = host.Customer, host.Labels["model"]
		}
	}
	return out, nil
}

// healMax is how many tasks are compared in a round, so that the streams do not wait.
const healMax = 20

// heal compares tasks of which a part may be missing with what Redis knows.
func (h *historian) heal(ctx context.Context) error {
	for range min(healMax, len(h.healing)) {
		if err := h.healTask(ctx, h.healing[0]); err != nil {
			return err
		}
		h.healing = h.healing[1:]
	}
	return nil
}

func (h *historian) healTask(ctx context.Context, id jobs.TaskID) error {
	has, err := h.history.Task(ctx, id)
	if err != nil && !errors.Is(err, history.ErrNotFound) {
		return err
	}
	is, err := h.fresh(ctx, id)
	if err != nil {
		return err
	}
	if is.Task == "" || is.Total == 0 { // Redis has nothing to compare with
		if has.Total == 0 || has.Outcomes.Sum() < has.Total || has.State == jobs.TaskEnded {
			return nil
		}
		has.State = jobs.TaskEnded // the end of the last job was stored when Redis had forgotten it
		return h.history.Reconcile(ctx, has, nil)
	}
	if has.Outcomes.Sum() == is.Outcomes.Sum() && has.State == is.State && has.Total == is.Total {
		return nil
	}
	if err := h.history.Reconcile(ctx, is, nil); err != nil {
		return err
	}
	return h.healJobs(ctx, is)
}

// healJobs takes the ends of a task's jobs from Redis, each from the zone in which its host is:
// the list of hosts that a zone has of a task can be written by who has a node of that zone.
func (h *historian) healJobs(ctx context.Context, t jobs.TaskInfo) error {
	return h.queue.Read.Jobs.EachJob(ctx, t.Task, 0, endsMax, func(list []jobs.JobInfo) error {
		names := make([]string, len(list))
		for i, j := range list {
			names[i] = j.Host
		}
		for _, zone := range t.Zones {
			in, err := h.believes.members(ctx, zone, t, slices.Clone(names))
			if err != nil {
				return err
			}
			if err := h.healZone(ctx, zone, t, in); err != nil {
				return err
			}
		}
		return nil
	})
}

// healZone is healJobs for hosts of one zone.
func (h *historian) healZone(ctx context.Context, zone string, t jobs.TaskInfo,
	hosts map[string]bool) error {
	var ids []jobs.ID
	for host, in := range hosts {
		if in && host != "" {
			ids = append(ids, jobs.NewID(t.Task, host))
		}
	}
	slices.Sort(ids)
	list, err := h.queue.Read.Jobs.JobsIn(ctx, zone, ids)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(j jobs.JobInfo) bool { return j.State != jobs.Ended })
	if len(list) == 0 {
		return nil
	}
	ended, err := h.complete(ctx, zone, t, list)
	if err != nil {
		return err
	}
	return h.history.Reconcile(ctx, t, ended)
}
