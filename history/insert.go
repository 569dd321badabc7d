package history

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// table is where rows go: its name and columns, and what is done about a row that
// is there already.
type table struct {
	name    string
	columns []string
	clash   string
}

// parametersMax is how many values a statement for PostgreSQL has at most, which
// takes 65,535; more at once is not faster. SQLite gets a row at a time: it looks
// for the name of each value among all of them, so that 150 rows at once took three
// times as long (measured), and there is no way to a server that would be saved.
const parametersMax = 3000

// insert writes rows, as many at once as a statement takes. All statements but the
// last are the same one.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, t table, rows [][]any) error {
	most := parametersMax / len(t.columns)
	if s.at.file != "" {
		most = 1
	}
	var full *sql.Stmt
	for len(rows) > 0 {
		n := min(most, len(rows))
		args := make([]any, 0, n*len(t.columns))
		for _, r := range rows[:n] {
			args = append(args, r...)
		}
		rows = rows[n:]
		var err error
		switch {
		case n < most:
			_, err = tx.ExecContext(ctx, t.text(n), args...)
		case full == nil:
			if full, err = tx.PrepareContext(ctx, t.text(most)); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			defer full.Close()
			fallthrough
		default:
			_, err = full.ExecContext(ctx, args...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// text is the statement for so many rows.
func (t table) text(rows int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "insert into %s (%s) values ", t.name, strings.Join(t.columns, ", "))
	n := 0
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('(')
		for k := range t.columns {
			if k > 0 {
				b.WriteString(", ")
			}
			n++
			fmt.Fprintf(&b, "$%d", n)
		}
		b.WriteByte(')')
	}
	b.WriteString(t.clash)
	return b.String()
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
	taskTable = table{"tasks", taskColumns, replace("id", taskColumns[1:]...)}
	jobTable  = table{"jobs", jobColumns, replace("task, host", jobColumns[2:]...)}
	begun     = table{"attempts", attemptColumns,
		replace("task, host, attempt", "node", "started", "ended", "how")}
	ended       = table{"attempts", attemptColumns, replace("task, host, attempt", "ended", "how")}
	stepTable   = table{"steps", strings.Fields("task host step at"), ""}
	eventTable  = table{"events", strings.Fields("zone entry at event object task detail"), ""}
	outputTable = table{"output", strings.Fields("task host size kept data"),
		replace("task, host", "size", "kept", "data")}

	taskColumns = strings.Fields("id runbook operator target zones inventory schedule tick priority " +
		"retry_of cancelled state total submitted started finished")
	jobColumns = strings.Fields("task host zone customer model runbook operator outcome class exit " +
		"error note node attempt tries due started finished times")
	attemptColumns = strings.Fields("task host attempt node started ended how")
)
