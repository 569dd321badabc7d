package server

import (
	"context"
	"time"

	"muster/history/outcomes"
	"muster/jobs/outliers"
	"muster/server/duties"
	"muster/server/election"
	"muster/server/nodes"
)

// outliersDuty sets nodes aside whose jobs fail much more often than those of others.
func outliersDuty(s *Server) election.Duty {
	work := func(ctx context.Context, _ *election.Term) error {
		o := &nodes.Outlying{Policy: s.cfg.Outliers, Queue: s.queue.Hub.Nodes, Keys: s.site.keys,
			Log: s.log, Now: s.clock,
			Counts: func(ctx context.Context, from time.Time) ([]outliers.Count, error) {
				return outcomes.Since(ctx, s.history, from)
			}}
		duties.Repeat(ctx, s.log, "nodes whose jobs fail", nodes.OutliersEvery, o.RunOnce)
		return nil
	}
	return election.Duty{Name: nodes.OutliersDuty, Work: work}
}
