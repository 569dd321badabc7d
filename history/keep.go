package history

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"muster/jobs"
)

// The sizes of a batch of deletions, which are small so that other calls do not wait long.
const (
	forgetTasks = 200
	forgetRows  = 4000
)

// unfinishedKeep is the additional time for a task whose end is not known. It is as long as Redis
// knows such a task, because until then it may still end.
const unfinishedKeep = 70 * 24 * time.Hour

// Forget deletes one batch of tasks that ended before an instant, and returns the number of
// deleted rows; 0: there is nothing left to delete. Jobs are deleted with their task. A task is
// deleted once all of it is older, and its own row last.
func (s *Store) Forget(ctx context.Context, before time.Time) (int64, error) {
	at := int64(jobs.MicrosOf(before))
	tasks, err := s.forgettable(ctx, at, int64(jobs.MicrosOf(before.Add(-unfinishedKeep))))
	if err != nil {
		return 0, err
	}
	f := forgetting{ctx: ctx, sqlite: s.at.file != "", left: forgetRows}
	err = s.tx(ctx, "forget", func(tx *sql.Tx) error {
		f.tx = tx
		if len(tasks) == 0 {
			f.loose(at)
		} else {
			f.tasks(tasks)
		}
		return f.err
	})
	return forgetRows - f.left, err
}

// forgettable lists tasks that ended before an instant and, if their end is not known, were
// submitted before another one, the oldest first; at most forgetTasks. If there is none, it lists
// tasks that are not stored but have a job that ended before the instant.
func (s *Store) forgettable(ctx context.Context, ended, submitted int64) (list []any, err error) {
	add := func(scan func(...any) error) error {
		var id string
		err := scan(&id)
		list = append(list, id)
		return err
	}
	err = s.rows(ctx, "forget", fmt.Sprintf(`select id from tasks where submitted < $1 and
		finished < $1 and (finished > 0 or submitted < $2) order by submitted limit %d`, forgetTasks),
		[]any{ended, submitted}, add)
	if err != nil || len(list) > 0 {
		return list, err
	}
	err = s.rows(ctx, "forget", fmt.Sprintf(`select distinct task from (select task from jobs
		where finished < $1 and attempt >= 0 and not exists
		(select 1 from tasks where id = jobs.task) order by finished limit %d) old`, forgetTasks),
		[]any{ended}, add)
	return list, err
}

// forgetting is one batch of deletions; it stops at the first error.
type forgetting struct {
	ctx    context.Context
	tx     *sql.Tx
	sqlite bool
	left   int64 // rows that may still be deleted
	err    error
}

// some deletes rows of a table, up to the bound. It reports whether it is certain that none is
// left.
func (f *forgetting) some(table, where string, args ...any) bool {
	if f.err != nil || f.left <= 0 {
		return false
	}
	text := fmt.Sprintf("delete from %s where ctid = any(array(select ctid from %s where %s "+
		"limit %d))", table, table, where, f.left)
	if f.sqlite {
		text = fmt.Sprintf("delete from %s where rowid in (select rowid from %s where %s limit %d)",
			table, table, where, f.left)
	}
	r, err := f.tx.ExecContext(f.ctx, text, args...)
	if err != nil {
		f.err = fmt.Errorf("%s: %w", table, err)
		return false
	}
	n, err := r.RowsAffected()
	f.left, f.err = f.left-n, err
	return err == nil && f.left > 0
}

// tasks deletes rows of some tasks. The rows of the tasks themselves are deleted when nothing else
// of them is left.
func (f *forgetting) tasks(list []any) {
	marks := make([]string, len(list))
	for i := range list {
		marks[i] = fmt.Sprintf("$%d", i+1)
	}
	in := " in (" + strings.Join(marks, ", ") + ")"
	for _, table := range []string{"steps", "attempts", "output", "events", "plans", "jobs"} {
		if !f.some(table, "task"+in, list...) {
			return
		}
	}
	f.some("tasks", "id"+in, list...)
}

// loose deletes rows that belong to no task.
func (f *forgetting) loose(before int64) {
	if f.some("events", "task = '' and at < $1", before) && f.some("plans", "at < $1", before) {
		f.some("gaps", "at < $1", before)
	}
}
