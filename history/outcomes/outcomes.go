// Package outcomes counts how jobs ended on nodes.
//
// Floor 4: may import history, jobs, jobs/outliers.
package outcomes

import (
	"context"
	"strings"
	"time"

	"muster/history"
	"muster/jobs"
	"muster/jobs/outliers"
)

// Since counts the jobs that ended at a time or later, by work and node.
func Since(ctx context.Context, s *history.Store, from time.Time) ([]outliers.Count, error) {
	// attempt >= 0 allows the index by time.
	const text = "select task, zone, runbook, node, outcome, count(*) from jobs where " +
		"finished >= ? and attempt >= 0 group by task, zone, runbook, node, outcome"
	type key struct {
		outliers.Work
		node string
	}
	sums := map[key]*outliers.Count{}
	err := history.HandleOf(s).Rows(ctx, "outcomes", text, []any{int64(jobs.MicrosOf(from))},
		func(scan func(...any) error) error {
			var w outliers.Work
			var worker string
			var outcome jobs.Outcome
			var n int
			if err := scan(&w.Task, &w.Zone, &w.Runbook, &worker, &outcome, &n); err != nil {
				return err
			}
			node, _, _ := strings.Cut(worker, "/")
			bad, counts := outliers.Bad(outcome)
			if node == "" || !counts {
				return nil
			}
			k := key{w, node}
			if sums[k] == nil {
				sums[k] = &outliers.Count{Work: w, Node: node}
			}
			sums[k].Jobs += n
			if bad {
				sums[k].Failed += n
			}
			return nil
		})
	list := make([]outliers.Count, 0, len(sums))
	for _, c := range sums {
		list = append(list, *c)
	}
	return list, err
}
