package history

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

// table is where rows go: its name and columns, and what is done about a row that
// is there already.
type table struct {
	name    string
	columns []string
	clash   string
}

// sqliteRows is how many rows one statement for SQLite has: most of what a call costs is
// not the row. More at once are not faster (measured).
const sqliteRows = 16

// insert writes rows. One of them may not be there twice.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, t table, rows [][]any) error {
	_, err := s.count(ctx, tx, t, rows)
	return err
}

// count is insert, and returns how many rows came or changed.
func (s *Store) count(ctx context.Context, tx *sql.Tx, t table, rows [][]any) (n int64, err error) {
	if len(rows) == 0 {
		return 0, nil
	}
	err = ctx.Err()
	switch {
	case err != nil:
	case s.at.file != "":
		// A context that can end costs the driver a goroutine for each call, and a batch is
		// soon over.
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

// insertSQLite writes some rows a statement. All statements but the last are the same one.
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

// values is the statement for so many rows. Its parameters have no names: the driver looks
// for each name among all of them.
func (t table) values(rows int) string {
	row := "(?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	return t.head() + "values " + row + strings.Repeat(", "+row, rows-1) + t.clash
}

func (t table) head() string {
	return "insert into " + t.name + " (" + strings.Join(t.columns, ", ") + ") "
}

// unnest is the statement for any number of rows, for PostgreSQL: a list a column. It is
// the same text for all batches, so the server parses and plans it once a connection.
func (t table) unnest(rows [][]any) string {
	lists := make([]string, len(t.columns))
	for i, v := range rows[0] {
		kind := "bigint" // also of nothing: only numbers may be missing
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

// numbers may be missing.
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

// replace is what makes the last row that came the one that stays.
func replace(key string, columns ...string) string {
	sets := make([]string, len(columns))
	for i, c := range columns {
		sets[i] = c + " = excluded." + c
	}
	return fmt.Sprintf(" on conflict (%s) do update set %s", key, strings.Join(sets, ", "))
}

var (
	// Redis forgets the zones of a task one by one, each a day after its end: what is left is
	// not all of it.
	taskTable = table{"tasks", taskColumns, strings.Replace(replace("id", taskColumns[1:]...),
		"total = excluded.total", "total = case when excluded.total < tasks.total then tasks.total "+
			"else excluded.total end", 1)}
	// An end is final; only one that nobody knew may be settled later. The same end may come
	// again with more, from a Redis that still has the whole record of the job.
	jobTable = table{"jobs", jobColumns, replace("task, host", jobColumns[2:]...) + ` where
		jobs.outcome = 'unknown' or jobs.outcome = excluded.outcome and
		jobs.attempt <= excluded.attempt and (jobs.times = '' or excluded.times <> '')`}
	begun = table{"attempts", attemptColumns,
		replace("task, host, attempt", "node", "started", "ended", "how")}
	ended       = table{"attempts", attemptColumns, replace("task, host, attempt", "ended", "how")}
	stepTable   = table{"steps", strings.Fields("task host step at"), ""}
	eventTable  = table{"events", strings.Fields("zone entry at event object task detail"), ""}
	outputTable = table{"output", strings.Fields("task host size kept data"),
		replace("task, host", "size", "kept", "data")}

	taskColumns = strings.Fields("id runbook operator target zones inventory schedule tick priority " +
		"retry_of cancelled state total submitted started finished proven reason ran")
	jobColumns = strings.Fields("task host zone customer model runbook operator outcome class exit " +
		"error note node attempt tries due started finished times")
	attemptColumns = strings.Fields("task host attempt node started ended how")
)
