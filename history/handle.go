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

// Rows runs a query, and calls f for each row.
func (h Handle) Rows(ctx context.Context, what, query string, args []any,
	f func(scan func(...any) error) error) error {
	return h.s.rows(ctx, what, query, args, f)
}

// SQLite reports whether the database is a file of SQLite.
func (h Handle) SQLite() bool { return h.s.at.file != "" }
