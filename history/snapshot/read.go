package snapshot

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster/history"
)

// Table is a table with the names of its columns.
type Table struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
}

// Sink takes a copy: a table, then its rows. A value is nil, int64, string or []byte.
type Sink interface {
	Table(t Table) error
	Row(values []any) error
}

// migrations is the table of goose, which a copy must not bring back.
const migrations = "goose_db_version"

// Version returns the version of the tables: only tables of the same version take a copy.
func Version(ctx context.Context, h history.Handle) (n int64, err error) {
	err = h.Rows(ctx, "version of the tables", "select max(version_id) from "+migrations, nil,
		func(scan func(...any) error) error { return scan(&n) })
	return n, err
}

// Empty reports whether no table has rows that somebody could miss: a new history is empty.
func Empty(ctx context.Context, h history.Handle) (empty bool, err error) {
	empty = true
	for _, name := range []string{"streams", "tasks", "jobs", "events", "agreed", "audit_entries"} {
		err := h.Rows(ctx, "look for rows", "select 1 from "+name+" limit 1", nil,
			func(func(...any) error) error {
				empty = false
				return nil
			})
		if err != nil {
			return false, err
		}
	}
	return empty, nil
}

// Read passes all tables to the sink, as they are at one moment.
func Read(ctx context.Context, h history.Handle, to Sink) error {
	if _, err := Version(ctx, h); err != nil { // it waits for the tables
		return err
	}
	// SQLite has no levels: all that one transaction reads is of one moment.
	tx, err := h.Reader().BeginTx(ctx, &sql.TxOptions{ReadOnly: true,
		Isolation: sql.LevelRepeatableRead})
	if err != nil {
		return err
	}
	list, err := tables(ctx, tx, h.SQLite())
	for _, name := range list {
		if err = readTable(ctx, tx, name, to); err != nil {
			err = fmt.Errorf("copy table %s: %w", name, err)
			break
		}
	}
	return errors.Join(err, tx.Rollback())
}

// tables returns the names of all tables of muster.
func tables(ctx context.Context, tx *sql.Tx, sqlite bool) (list []string, err error) {
	text := "select table_name from information_schema.tables " +
		"where table_schema = current_schema() and table_type = 'BASE TABLE'"
	if sqlite {
		text = "select name from sqlite_master where type = 'table'"
	}
	rows, err := tx.QueryContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		if name != migrations && !strings.HasPrefix(name, "sqlite_") {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, rows.Err()
}

func readTable(ctx context.Context, tx *sql.Tx, name string, to Sink) error {
	rows, err := tx.QueryContext(ctx, "select * from "+name)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	if err := to.Table(Table{name, columns}); err != nil {
		return err
	}
	values, places := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		places[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return err
		}
		if err := to.Row(values); err != nil {
			return err
		}
	}
	return rows.Err()
}

// errVersion is wrapped if a copy is of other tables.
var errVersion = errors.New("the backup is of other tables")
