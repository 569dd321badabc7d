package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// table describes the target of rows: its name and columns, and how to handle a row that exists
// already.
type table struct {
	name    string
	columns []string
	clash   string
}

// sqliteRows is the number of rows in a statement for SQLite: most of the cost of a call does not
// depend on the rows. More rows are not faster (measured).
const sqliteRows = 16

// insert writes rows. Each key may occur only once in them.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, t table, rows [][]any) error {
	_, err := s.count(ctx, tx, t, rows)
	return err
}

// count does the same as insert, and returns how many rows were new or changed.
func (s *Store) count(ctx context.Context, tx *sql.Tx, t table, rows [][]any) (n int64, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	err = ctx.Err()
	switch {
	case err != nil:
	case s.at.file != "":
		// With a context that can end, the driver starts a goroutine for each call; and a batch takes
		// only moments.
		n, err = insertSQLite(context.WithoutCancel(ctx), tx, t, rows)
	default:
		var columns []any
		if columns, err = columnsOf(rows); err == nil {
			n, err = affected(tx.ExecContext(ctx, t.unnest(rows), columns...))
		}
	}
	if err != nil {
		return n, fmt.Errorf("%s: %w", t.name, err)
	}
	return n, nil
}

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// insertSQLite writes the rows in several statements. All but the last have the same text.
func insertSQLite(ctx context.Context, tx *sql.Tx, t table, rows [][]any) (all int64, err error) {
	args := make([]any, 0, sqliteRows*len(t.columns))
	var full *sql.Stmt
	for part := range slices.Chunk(rows, sqliteRows) {
		args = args[:0]
		for _, r := range part {
			args = append(args, r...)
		}
		var n int64
		switch {
		case len(part) < sqliteRows:
			n, err = affected(tx.ExecContext(ctx, t.values(len(part)), args...))
		case full == nil:
			if full, err = tx.PrepareContext(ctx, t.values(sqliteRows)); err != nil {
				return all, err
			}
			defer full.Close()
			fallthrough
		default:
			n, err = affected(full.ExecContext(ctx, args...))
		}
		if all += n; err != nil {
			return all, err
		}
	}
	return all, nil
}

// values returns the statement for so many rows. Its parameters have no names, because the driver
// would search for each name among all of them.
func (t table) values(rows int) string {
	row := "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	return t.head() + "values " + row + strings.Repeat(", "+row, rows-1) + t.clash
}

func (t table) head() string {
	return "insert into " + t.name + " (" + strings.Join(t.columns, ", ") + ") "
}

// unnest returns the statement for any number of rows, for PostgreSQL: a list for each column. Its
// text is the same for all batches, so the server parses and plans it once a connection.
func (t table) unnest(rows [][]any) string {
	lists := make([]string, len(t.columns))
	for i, v := range rows[0] {
		kind := "bigint" // also for a nil: only numbers may be missing
		switch v.(type) {
		case string:
			kind = "text"
		case []byte:
			kind = "bytea"
		}
		lists[i] = fmt.Sprintf("$%d::%s[]", i+1, kind)
	}
	return t.head() + "select * from unnest(" + strings.Join(lists, ", ") + ")" + t.clash
}

// columnsOf turns rows into columns, each of one type.
func columnsOf(rows [][]any) (out []any, err error) {
	for i, first := range rows[0] {
		var list any
		switch first.(type) {
		case string:
			list, err = column[string](rows, i)
		case []byte:
			list, err = column[[]byte](rows, i)
		default:
			list, err = numbers(rows, i)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, list)
	}
	return out, nil
}

func column[T any](rows [][]any, i int) ([]T, error) {
	list := make([]T, len(rows))
	for k, r := range rows {
		var ok bool
		if list[k], ok = r[i].(T); !ok {
			return nil, fmt.Errorf("column %d has %T and %T", i+1, rows[0][i], r[i])
		}
	}
	return list, nil
}

// numbers returns a column of numbers, some of which may be missing.
func numbers(rows [][]any, i int) ([]*int64, error) {
	list := make([]*int64, len(rows))
	for k, r := range rows {
		n, ok := r[i].(int64)
		switch {
		case ok:
			list[k] = &n
		case r[i] != nil:
			return nil, fmt.Errorf("column %d has numbers and %T", i+1, r[i])
		}
	}
	return list, nil
}

// replace returns the clause with which a later row replaces an earlier one.
func replace(key string, columns ...string) string {
	sets := make([]string, len(columns))
	for i, c := range columns {
		sets[i] = c + " = excluded." + c
	}
	return fmt.Sprintf(" on conflict (%s) do update set %s", key, strings.Join(sets, ", "))
}

var (
	// Redis forgets the zones of a task one by one, each a day after its end, so a later count may
	// lack some of them.
	taskTable = table{"tasks", taskColumns, strings.Replace(replace("id", taskColumns[1:]...),
		"total = excluded.total", "total = case when excluded.total < tasks.total then tasks.total "+
			"else excluded.total end", 1)}
	// An end is final; only the outcome unknown may be settled later. The same end may arrive again
	// with more data, from a Redis that still has the whole record of the job.
	// An end that a node has proven takes the place of one that is not, and never gives way to it.
	jobTable = table{"jobs", jobColumns, replace("task, host", jobColumns[2:]...) + ` where
		(jobs.outcome = 'unknown' or jobs.proof = 'none' and excluded.proof = 'node' or
		jobs.outcome = excluded.outcome and jobs.attempt <= excluded.attempt and
		(jobs.times = '' or excluded.times <> '')) and
		(jobs.proof <> 'node' or excluded.proof = 'node')`}
	begun = table{"attempts", attemptColumns,
		replace("task, host, attempt", "node", "started", "ended", "how")}
	ended       = table{"attempts", attemptColumns, replace("task, host, attempt", "ended", "how")}
	stepTable   = table{"steps", strings.Fields("task host step at"), ""}
	eventTable  = table{"events", strings.Fields("zone entry at event object task detail who"), ""}
	outputTable = table{"output", strings.Fields("task host size kept data"),
		replace("task, host", "size", "kept", "data")}

	taskColumns = strings.Fields("id runbook operator target zones inventory schedule tick priority " +
		"retry_of cancelled state total submitted started finished proven reason ran")
	jobColumns = strings.Fields("task host zone customer model runbook operator outcome class exit " +
		"error note node attempt tries due started finished times proof")
	attemptColumns = strings.Fields("task host attempt node started ended how")
)
