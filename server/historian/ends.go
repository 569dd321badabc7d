package historian

import (
	"context"
	"maps"
	"slices"

	"muster/api"
	"muster/fleet"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/read"
)

// ends reads from Redis how jobs ended.
type ends struct {
	memory  memory
	jobs    Jobs
	endings Endings
	outputs Outputs
	stock   func() (*fleet.Inventory, string)
	prover  *prover
}

// An account is how some jobs ended, and what their hosts said.
type account struct {
	jobs []api.PastJob
	said map[jobs.ID]jobs.Output
}

func (a *account) add(b account) {
	a.jobs = append(a.jobs, b.jobs...)
	if a.said == nil {
		a.said = map[jobs.ID]jobs.Output{}
	}
	maps.Copy(a.said, b.said)
}

// endsMax bounds the jobs that are read at once.
const endsMax = 500

// of returns what Redis knows of the jobs that ended by some events. Where Redis has forgotten a
// job, the event says how it ended.
func (r ends) of(ctx context.Context, zone string, list []jobs.Happening) (out account, err error) {
	byTask := map[jobs.TaskID][]jobs.Happening{}
	for _, e := range list {
		id := jobs.ID(e.Object).Task()
		byTask[id] = append(byTask[id], e)
	}
	for id, events := range byTask {
		t, err := r.memory.task(ctx, id)
		if err != nil {
			return out, err
		}
		for part := range slices.Chunk(events, endsMax) {
			ids := make([]jobs.ID, len(part))
			for i, e := range part {
				ids[i] = jobs.ID(e.Object)
			}
			found, err := r.endings.Endings(ctx, zone, ids)
			if err != nil {
				return out, err
			}
			for i, e := range found {
				if e.Job.State != jobs.Ended {
					found[i] = read.Ending{Job: history.EndOf(part[i])}
				}
			}
			some, err := r.complete(ctx, zone, t, found)
			if err != nil {
				return out, err
			}
			out.add(some)
		}
	}
	return out, nil
}

// complete adds to jobs of one zone the output of their hosts, the customers, and whether their
// ends are proven.
func (r ends) complete(ctx context.Context, zone string, t jobs.TaskInfo, list []read.Ending) (
	account, error) {
	entries, err := r.outputs.Entries(ctx, zone, idsOf(list))
	if err != nil {
		return account{}, err
	}
	judge, err := r.prover.current()
	if err != nil {
		return account{}, err
	}
	stock, _ := r.stock()
	out := account{make([]api.PastJob, len(list)), make(map[jobs.ID]jobs.Output, len(entries))}
	for i, e := range list {
		j := e.Job
		proof, said, doubt := r.prover.mark(judge, e, entries[j.ID])
		if doubt != nil {
			r.prover.tell(ctx, zone, string(j.ID), "its end: "+string(j.Outcome), doubt)
		}
		if len(said) > 0 {
			out.said[j.ID] = said
		}
		out.jobs[i] = api.PastJob{JobInfo: j, Zone: zone, Runbook: t.Runbook, Operator: t.Operator,
			Proof: proof, Asked: &api.Asked{On: t.On, Proven: t.Proven, Reason: t.Reason, Ran: t.Ran}}
		if stock == nil {
			continue
		}
		if host, ok := stock.Host(j.Host); ok {
			out.jobs[i].Customer, out.jobs[i].Model = host.Customer, host.Labels["model"]
		}
	}
	return out, nil
}
