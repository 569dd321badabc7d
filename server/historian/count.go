package historian

import (
	"context"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/server/metrics"
)

// Counting says where what was stored is counted.
type Counting struct {
	Meters Meters // nil: nowhere
	// Deferred names the jobs of a task that were deferred to a window.
	Deferred func(ctx context.Context, id jobs.TaskID) (map[string]bool, error)
	// Stored hears of each batch, and must not wait; nil: nobody does.
	Stored func(history.Batch)
}

// Meters take what was stored.
type Meters interface {
	Happened(event string)
	Ended(e metrics.End)
}

// count counts a batch that was stored. An end is counted once, with its first outcome: an outcome
// that is settled later is none of its own.
func (c Counting) count(ctx context.Context, b history.Batch) error {
	if c.Stored != nil {
		c.Stored(b)
	}
	if c.Meters == nil {
		return nil
	}
	first := map[jobs.ID]jobs.Outcome{}
	for _, e := range b.Events {
		c.Meters.Happened(e.Event)
		if e.Event == "end" && jobs.ID(e.Object).Host() != "" {
			if _, again := first[jobs.ID(e.Object)]; !again {
				first[jobs.ID(e.Object)] = history.EndOf(e).Outcome
			}
		}
	}
	missed, err := c.missed(ctx, b.Ended)
	for _, j := range b.Ended {
		if outcome, ended := first[j.ID]; ended {
			c.Meters.Ended(metrics.End{Runbook: j.Runbook, Outcome: outcome, Began: j.Attempt > 0,
				Times: j.Times, Missed: missed[j.ID]})
		}
	}
	return err
}

// missed returns the jobs that have expired although they waited for a window.
func (c Counting) missed(ctx context.Context, ended []api.PastJob) (map[jobs.ID]bool, error) {
	out := map[jobs.ID]bool{}
	waited := map[jobs.TaskID]map[string]bool{}
	for _, j := range ended {
		if j.Outcome != jobs.Expired || c.Deferred == nil {
			continue
		}
		id := j.ID.Task()
		if waited[id] == nil {
			var err error
			if waited[id], err = c.Deferred(ctx, id); err != nil {
				return out, err
			}
		}
		out[j.ID] = waited[id][string(j.ID)]
	}
	return out, nil
}
