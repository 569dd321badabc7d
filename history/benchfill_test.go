package history_test

import (
	"database/sql"
	"fmt"
	"testing"

	"muster/history"
	"muster/jobs"
)

// fillTables stores so many jobs, as fleetOf makes them, inside of the database: what the
// historian stores in an hour is there in minutes. Indices are made after the rows.
func fillTables(b testing.TB, s *history.Store, n int) {
	b.Helper()
	err := history.Tx(b.Context(), s, func(tx *sql.Tx) error {
		do := func(text string, args ...any) error {
			if _, err := tx.ExecContext(b.Context(), text, args...); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
			return nil
		}
		indices, err := history.WithoutIndices(b.Context(), tx, s, "jobs")
		if err != nil {
			return err
		}
		if err := fillLists(do, (n+2999)/3000); err != nil {
			return err
		}
		err = do(`insert into jobs (task, host, zone, customer, model, runbook, operator, outcome, class, exit, error,
			note, node, attempt, tries, due, started, finished)
			select t.id, h.name, 'default', h.customer, '', t.runbook, t.operator, h.outcome, '', 0, '', '', 'n1/1', 1, 0,
				$1 + (t.n * 3000 + h.n) * 1000, $1 + (t.n * 3000 + h.n) * 1000 - 3000000, $1 + (t.n * 3000 + h.n) * 1000
			from many_tasks t cross join many_hosts h where t.n * 3000 + h.n < $2 order by t.n, h.n`,
			int64(jobs.MicrosOf(begin)), int64(n))
		for _, text := range indices {
			if err == nil {
				err = do(text)
			}
		}
		if err == nil && history.IsPostgres(s) {
			err = do("analyze jobs") // as autovacuum would
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// fillLists makes the lists of which the jobs are made: each task on each host.
func fillLists(do func(string, ...any) error, tasks int) error {
	err := do("create temporary table many_tasks (n bigint, id text, runbook text, operator text)")
	if err == nil {
		err = do("create temporary table many_hosts (n bigint, name text, customer text, outcome text)")
	}
	for i := 0; i < tasks && err == nil; i++ {
		err = do("insert into many_tasks values ($1, $2, $3, $4)", int64(i), string(taskID(i)), fmt.Sprintf("r%d", i%10),
			fmt.Sprintf("o%d", i%20))
	}
	for i := 0; i < 3000 && err == nil; i++ {
		outcome := jobs.Succeeded
		if i%100 == 7 {
			outcome = jobs.Failed
		}
		err = do("insert into many_hosts values ($1, $2, $3, $4)", int64(i), fmt.Sprintf("fw%04d", i),
			fmt.Sprintf("c%03d", i%100), string(outcome))
	}
	return err
}
