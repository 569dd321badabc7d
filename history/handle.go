package history

import (
	"context"
	"database/sql"
)

// A Handle lets a room below this one keep tables of its own in the same database. The tables
// themselves are made here, by the migrations.
type Handle struct{ s *Store }

// HandleOf returns the handle of a store.
func HandleOf(s *Store) Handle { return Handle{s} }

// Tx runs f in one transaction that writes. Errors begin with the word what.
func (h Handle) Tx(ctx context.Context, what string, f func(*sql.Tx) error) error {
	return h.s.tx(ctx, what, f)
}

// Statement is one statement that writes, with its arguments.
type Statement struct {
	Text string
	Args []any
}

// Exec carries out statements in one transaction.
func (h Handle) Exec(ctx context.Context, what string, list ...Statement) error {
	return h.s.tx(ctx, what, func(tx *sql.Tx) error {
		for _, one := range list {
			if _, err := tx.ExecContext(ctx, one.Text, one.Args...); err != nil {
				return err
			}
		}
		return nil
	})
}

// Rows runs a query, and calls f for each row.
func (h Handle) Rows(ctx context.Context, what, query string, args []any,
	f func(scan func(...any) error) error) error {
	return h.s.rows(ctx, what, query, args, f)
}

// Reader returns the connections that only read, once the tables are right.
func (h Handle) Reader() *sql.DB { return h.s.read }

// SQLite reports whether the database is a file of SQLite.
func (h Handle) SQLite() bool { return h.s.at.file != "" }

// Also names what is done in each transaction that stores a part of the past: both happen, or
// neither. A batch without a position fills in a gap: some of its ends may be stored already, and
// the others are stored afterwards. It counts from the next transaction on.
func (h Handle) Also(f func(context.Context, *sql.Tx, Batch) error) { h.s.also.Store(&f) }
