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

// Since counts the jobs that ended at a time or later, and began at another one or later, by work
// and node.
func Since(ctx context.Context, s *history.Store, from, begun time.Time) ([]outliers.Count, error) {
	// attempt >= 0 allows the index by time.
	const text = "select task, zone, customer, runbook, node, outcome, count(*) from jobs where " +
		"finished >= $1 and started >= $2 and attempt >= 0 " +
		"group by task, zone, customer, runbook, node, outcome"
	type key struct {
		outliers.Work
		node string
	}
	sums := map[key]*outliers.Count{}
	times := []any{int64(jobs.MicrosOf(from)), int64(jobs.MicrosOf(begun))}
	err := history.HandleOf(s).Rows(ctx, "outcomes", text, times,
		func(scan func(...any) error) error {
			var w outliers.Work
			var worker string
			var outcome jobs.Outcome
			var n int
			err := scan(&w.Task, &w.Zone, &w.Customer, &w.Runbook, &worker, &outcome, &n)
			if err != nil {
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
