package history

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"testing/fstest"

	"muster/api"
	"muster/jobs"
)

// Exec changes the tables behind the back of the store.
func (s *Store) Exec(ctx context.Context, text string) error {
	_, err := s.write.ExecContext(ctx, text)
	return err
}

// Cursor reads the cursor of a page, and writes it again.
func Cursor(text string) (string, error) {
	w, err := Filter{}.where(text, false)
	if err != nil || text == "" {
		return "", err
	}
	id := jobs.NewID(jobs.TaskID(w.Args[2].(string)), w.Args[3].(string))
	return cursorOf(api.PastJob{JobInfo: jobs.JobInfo{ID: id, Finished: instant(w.Args[0].(int64))}}), nil
}

// Explain returns the database's plan for the first page, in its own words.
func Explain(ctx context.Context, s *Store, f Filter) (lines []string, err error) {
	text, args, err := s.page(f, "", 51)
	if err != nil {
		return nil, err
	}
	explain := "explain (analyze, buffers, timing off) "
	if !IsPostgres(s) {
		explain = "explain query plan "
	}
	err = s.rows(ctx, "explain", explain+text, args, func(scan func(...any) error) error {
		var a, b, c any
		var line string
		into := []any{&line}
		if !IsPostgres(s) {
			into = []any{&a, &b, &c, &line}
		}
		err := scan(into...)
		lines = append(lines, line)
		return err
	})
	return lines, err
}

// Later gives an unused store the tables of a later muster, with a further change by a text.
func Later(s *Store, text string) error {
	list, err := fs.Glob(s.schema, "*.sql")
	if err != nil {
		return err
	}
	all := fstest.MapFS{fmt.Sprintf("%04d_later.sql", len(list)+1): {Data: []byte("-- +goose Up\n" + text)}}
	for _, name := range list {
		data, err := fs.ReadFile(s.schema, name)
		if err != nil {
			return err
		}
		all[name] = &fstest.MapFile{Data: data}
	}
	s.schema = all
	return nil
}

// Versions returns the number of changes of the tables that a store knows.
func Versions(s *Store) int {
	list, _ := fs.Glob(s.schema, "*.sql") // the pattern is right
	return len(list)
}

// Tx does f in one transaction of a store.
func Tx(ctx context.Context, s *Store, f func(*sql.Tx) error) error { return s.tx(ctx, "a test", f) }

// IsPostgres reports whether a store is PostgreSQL.
func IsPostgres(s *Store) bool { return s.at.file == "" }

// WithoutIndices drops the indices of a table but its key, and returns what makes them.
func WithoutIndices(ctx context.Context, tx *sql.Tx, s *Store, of string) (again []string, err error) {
	text := "select name, sql from sqlite_master where type = 'index' and tbl_name = $1 and sql is not null"
	if IsPostgres(s) {
		text = "select indexname, indexdef from pg_indexes where tablename = $1 and indexname not like '%_pkey'"
	}
	rows, err := tx.QueryContext(ctx, text, of)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var drop []string
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return nil, err
		}
		drop, again = append(drop, "drop index "+name), append(again, text)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, text := range drop {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return nil, err
		}
	}
	return again, nil
}
