package historian

import (
	"context"
	"slices"

	"muster/api"
	"muster/fleet"
	"muster/history"
	"muster/jobs"
)

// ends reads from Redis how jobs ended.
type ends struct {
	memory  memory
	jobs    Jobs
	outputs Outputs
	stock   func() (*fleet.Inventory, string)
}

// endsMax bounds the jobs that are read at once.
const endsMax = 500

// of returns what Redis knows of the jobs that ended by some events. Where Redis has forgotten a
// job, the event says how it ended.
func (r ends) of(ctx context.Context, zone string, list []jobs.Happening) ([]api.PastJob, error) {
	byTask := map[jobs.TaskID][]jobs.Happening{}
	for _, e := range list {
		id := jobs.ID(e.Object).Task()
		byTask[id] = append(byTask[id], e)
	}
	var out []api.PastJob
	for id, events := range byTask {
		t, err := r.memory.task(ctx, id)
		if err != nil {
			return nil, err
		}
		for part := range slices.Chunk(events, endsMax) {
			ids := make([]jobs.ID, len(part))
			for i, e := range part {
				ids[i] = jobs.ID(e.Object)
			}
			found, err := r.jobs.JobsIn(ctx, zone, ids)
			if err != nil {
				return nil, err
			}
			for i, j := range found {
				if j.State != jobs.Ended {
					found[i] = history.EndOf(part[i])
				}
			}
			jobs, err := r.complete(ctx, zone, t, found)
			if err != nil {
				return nil, err
			}
			out = append(out, jobs...)
		}
	}
	return out, nil
}

// complete adds to jobs of one zone the output of their hosts, and the customers.
func (r ends) complete(ctx context.Context, zone string, t jobs.TaskInfo, list []jobs.JobInfo) (
	[]api.PastJob, error) {
	ids := make([]jobs.ID, len(list))
	for i, j := range list {
		ids[i] = j.ID
	}
	said, err := r.outputs.Outputs(ctx, zone, ids)
	if err != nil {
		return nil, err
	}
	stock, _ := r.stock()
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
