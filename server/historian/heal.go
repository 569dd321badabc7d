package historian

import (
	"context"
	"errors"
	"slices"

	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/read"
)

// healer completes tasks in history of which a part may be missing.
type healer struct {
	past     PastTasks
	ends     ends
	believes believer
	suspects []jobs.TaskID
}

// add notes tasks to compare.
func (h *healer) add(list ...jobs.TaskID) { h.suspects = append(h.suspects, list...) }

// healMax bounds the tasks that are compared in a round, so that the streams do not wait.
const healMax = 20

// heal compares some of the suspects with what Redis knows.
func (h *healer) heal(ctx context.Context) error {
	for range min(healMax, len(h.suspects)) {
		if err := h.task(ctx, h.suspects[0]); err != nil {
			return err
		}
		h.suspects = h.suspects[1:]
	}
	return nil
}

func (h *healer) task(ctx context.Context, id jobs.TaskID) error {
	has, err := h.past.Task(ctx, id)
	if err != nil && !errors.Is(err, history.ErrNotFound) {
		return err
	}
	is, err := h.ends.memory.fresh(ctx, id)
	if err != nil {
		return err
	}
	if is.Task == "" || is.Total == 0 { // Redis has nothing to compare with
		if has.Total == 0 || has.Outcomes.Sum() < has.Total || has.State == jobs.TaskEnded {
			return nil
		}
		has.State = jobs.TaskEnded // the end of the last job was stored when Redis had forgotten it
		return h.past.Reconcile(ctx, has, nil, nil)
	}
	if has.Outcomes.Sum() == is.Outcomes.Sum() && has.State == is.State && has.Total == is.Total {
		return nil
	}
	if err := h.past.Reconcile(ctx, is, nil, nil); err != nil {
		return err
	}
	return h.jobs(ctx, is)
}

// jobs takes the ends of a task's jobs from Redis, each from the zone of its host: the list of
// hosts that a zone has of a task can be changed with the Redis user of any node of that zone.
func (h *healer) jobs(ctx context.Context, t jobs.TaskInfo) error {
	return h.ends.jobs.EachJob(ctx, t.Task, 0, endsMax, func(list []jobs.JobInfo) error {
		names := make([]string, len(list))
		for i, j := range list {
			names[i] = j.Host
		}
		for _, zone := range t.Zones {
			in, err := h.believes.members(ctx, zone, t, slices.Clone(names))
			if err != nil {
				return err
			}
			if err := h.zone(ctx, zone, t, in); err != nil {
				return err
			}
		}
		return nil
	})
}

// zone is jobs for the hosts of one zone.
func (h *healer) zone(ctx context.Context, zone string, t jobs.TaskInfo,
	hosts map[string]bool) error {
	var ids []jobs.ID
	for host, in := range hosts {
		if in && host != "" {
			ids = append(ids, jobs.NewID(t.Task, host))
		}
	}
	slices.Sort(ids)
	list, err := h.ends.endings.Endings(ctx, zone, ids)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(e read.Ending) bool { return e.Job.State != jobs.Ended })
	if len(list) == 0 {
		return nil
	}
	ended, err := h.ends.complete(ctx, zone, t, list)
	if err != nil {
		return err
	}
	return h.past.Reconcile(ctx, t, ended.jobs, ended.said)
}
