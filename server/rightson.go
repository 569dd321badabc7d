package server

import (
	"context"
	"slices"

	"muster/jobs"
	"muster/server/approvals"
	"muster/server/stock"
	"muster/server/tasks"
	"muster/server/web"
)

// rightsOn reads the facts of a task on which rights depend: from Redis or, if Redis has forgotten
// its jobs, from history.
type rightsOn struct {
	tasks.Finder
	approvals.Holds
	stock *stock.Store
}

// Task returns a task. One from history counts as forgotten, whether or not it has ended.
func (r rightsOn) Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	t, past, err := r.Finder.Task(ctx, id)
	t.Forgotten = past
	return t, err
}

// EachJob calls each with the jobs of a task. A host counts for a task of history only if it had
// the customer of today when its job ended: a host that changes hands takes no history along.
func (r rightsOn) EachJob(ctx context.Context, id jobs.TaskID, from, most int,
	each func([]jobs.JobInfo) error) error {
	_, forgotten, err := r.Finder.Task(ctx, id)
	if err != nil {
		return err
	}
	if !forgotten {
		return r.Jobs.EachJob(ctx, id, from, most, each)
	}
	past, err := r.History.Report(ctx, id)
	if err != nil {
		return err
	}
	list := []jobs.JobInfo{}
	if now := r.stock.Now(); now != nil {
		for _, j := range past.Jobs {
			if h, known := now.Host(j.Host); known && h.Customer == j.Customer {
				list = append(list, j.JobInfo)
			}
		}
	}
	for part := range slices.Chunk(list[min(from, len(list)):], max(most, 1)) {
		if err := each(part); err != nil {
			return err
		}
	}
	return nil
}

// near returns the zones of the hosts that a view shows.
func (s *Server) near(v *web.View) map[string]bool {
	zones := map[string]bool{}
	if seen := s.look.SeenNow(v); seen != nil {
		for _, h := range seen.Hosts() {
			zones[h.Zone] = true
		}
	}
	return zones
}
