package snapshot

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster/history"
)

// argsMax bounds the arguments of one statement. More are not faster: SQLite and PostgreSQL take
// long to read them.
const argsMax = 1000

// Replace empties all tables and fills them with a copy, which fill passes to the sink. All of that
// happens or nothing.
func Replace(ctx context.Context, h history.Handle, fill func(Sink) error) error {
	return h.Tx(ctx, "restore", func(tx *sql.Tx) error {
		list, err := tables(ctx, tx, h.SQLite())
		if err != nil {
			return err
		}
		for _, name := range list {
			if _, err := tx.ExecContext(ctx, "delete from "+name); err != nil {
				return fmt.Errorf("table %s: %w", name, err)
			}
		}
		w := &writer{ctx: ctx, tx: tx, known: list}
		if err := fill(w); err != nil {
			return err
		}
		return w.flush()
	})
}

// writer inserts rows, many at once.
type writer struct {
	ctx   context.Context
	tx    *sql.Tx
	known []string
	table Table
	args  []any
}

func (w *writer) Table(t Table) error {
	if err := w.flush(); err != nil {
		return err
	}
	if !slices.Contains(w.known, t.Name) {
		return fmt.Errorf("table %s: %w", t.Name, errVersion)
	}
	has, err := w.columns(t.Name)
	if err != nil {
		return err
	}
	for _, column := range t.Columns { // no name of a backup becomes a part of a statement unseen
		if !slices.Contains(has, column) {
			return fmt.Errorf("table %s has no column %s: %w", t.Name, column, errVersion)
		}
	}
	w.table = t
	return nil
}

func (w *writer) columns(table string) ([]string, error) {
	rows, err := w.tx.QueryContext(w.ctx, "select * from "+table+" where 1 = 0")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	return rows.Columns()
}

func (w *writer) Row(values []any) error {
	if len(values) != len(w.table.Columns) {
		return fmt.Errorf("table %s: a row with %d values, want %d", w.table.Name, len(values),
			len(w.table.Columns))
	}
	w.args = append(w.args, values...)
	if len(w.args)+len(values) > argsMax {
		return w.flush()
	}
	return nil
}

// flush inserts the rows that were collected.
func (w *writer) flush() error {
	if len(w.args) == 0 {
		return nil
	}
	wide := len(w.table.Columns)
	var b strings.Builder
	b.WriteString("insert into " + w.table.Name + " (" + strings.Join(w.table.Columns, ", ") +
		") values ")
	for i := range w.args {
		switch {
		case i == 0:
			b.WriteString("(")
		case i%wide == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(i+1))
	}
	b.WriteString(")")
	_, err := w.tx.ExecContext(w.ctx, b.String(), w.args...)
	w.args = w.args[:0]
	if err != nil {
		return fmt.Errorf("table %s: %w", w.table.Name, err)
	}
	return nil
}
