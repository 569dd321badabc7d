package history

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"muster/jobs"
)

// The sizes of a batch of what is deleted: others shall not wait for it.
const (
	forgetHosts  = 1000
	forgetEvents = 5000
)

// unfinishedKeep is how much longer a task is kept whose end is not known: as long as Redis
// knows of it, it may still end.
const unfinishedKeep = 70 * 24 * time.Hour

// Forget deletes one batch of what ended before an instant, and returns how many
// rows that were; 0: there is nothing left to delete. Jobs go with their task, and a
// task goes when all of it is older.
func (s *Store) Forget(ctx context.Context, before time.Time) (int64, error) {
	at := int64(jobs.MicrosOf(before))
	var task string
	err := s.rows(ctx, "forget", `select id from tasks where submitted < $1 and finished < $1 and
		(finished > 0 or submitted < $2) order by submitted limit 1`,
		[]any{at, int64(jobs.MicrosOf(before.Add(-unfinishedKeep)))},
		func(scan func(...any) error) error { return scan(&task) })
	if err != nil {
		return 0, err
	}
	if task == "" {
		// Ends of jobs whose task was never seen.
		err = s.rows(ctx, "forget", `select task from jobs where finished < $1 and
			attempt >= 0 and not exists (select 1 from tasks where id = jobs.task) order by finished limit 1`, []any{at},
			func(scan func(...any) error) error { return scan(&task) })
		if err != nil {
			return 0, err
		}
	}
	var n int64
	err = s.tx(ctx, "forget", func(tx *sql.Tx) error {
		f := forgetting{ctx: ctx, tx: tx}
		if task == "" {
			f.loose(at)
		} else {
			f.task(task)
		}
		n = f.rows
		return f.err
	})
	return n, err
}

// forgetting is one batch; it stops at the first error.
type forgetting struct {
	ctx  context.Context
	tx   *sql.Tx
	rows int64
	err  error
}

func (f *forgetting) run(text string, args ...any) int64 {
	if f.err != nil {
		return 0
	}
	r, err := f.tx.ExecContext(f.ctx, text, args...)
	if err != nil {
		f.err = err
		return 0
	}
	n, err := r.RowsAffected()
	f.rows, f.err = f.rows+n, err
	return n
}

// one reads one value; empty if there is none.
func (f *forgetting) one(into any, text string, args ...any) bool {
	if f.err != nil {
		return false
	}
	rows, err := f.tx.QueryContext(f.ctx, text, args...)
	if err != nil {
		f.err = err
		return false
	}
	defer rows.Close()
	found := rows.Next()
	if found {
		f.err = rows.Scan(into)
	} else {
		f.err = rows.Err()
	}
	return found && f.err == nil
}

// task deletes a part of a task; the last part takes the task itself.
func (f *forgetting) task(id string) {
	var host string
	text := "select host from jobs where task = $1 order by host limit 1 offset %d"
	if f.one(&host, fmt.Sprintf(text, forgetHosts), id) {
		for _, t := range []string{"steps", "attempts", "output", "jobs"} {
			f.run("delete from "+t+" where task = $1 and host < $2", id, host)
		}
		return
	}
	if f.events(id, -1) {
		return
	}
	for _, t := range []string{"steps", "attempts", "output", "jobs", "plans"} {
		f.run("delete from "+t+" where task = $1", id)
	}
	f.run("delete from tasks where id = $1", id)
}

// events deletes a part of the events of a task, before an instant or (−1) all. It
// tells whether there are more.
func (f *forgetting) events(task string, before int64) bool {
	end, args := "", []any{task}
	if before >= 0 {
		end, args = " and at < $2", append(args, before)
	}
	var at int64
	text := fmt.Sprintf("select at from events where task = $1%s order by at limit 1 offset %d", end,
		forgetEvents)
	if f.one(&at, text, args...) &&
		f.run("delete from events where task = $1 and at < $2", task, at) > 0 {
		return true
	}
	f.run("delete from events where task = $1"+end, args...)
	return false
}

// loose deletes what belongs to no task.
func (f *forgetting) loose(before int64) {
	if f.events("", before) {
		return
	}
	f.run("delete from gaps where at < $1", before)
	f.run("delete from plans where at < $1", before)
}
