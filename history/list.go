package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/history/part"
	"muster/jobs"
)

// Filter selects jobs that have ended; an empty field selects all.
type Filter struct {
	Customer string
	Host     string
	Runbook  string
	Operator string
	Outcome  jobs.Outcome
	Task     jobs.TaskID
	From     time.Time // that ended then or later
	To       time.Time // that ended before it

	// Seen are the parts of the house that whoever asks may see; nil: all.
	Seen []part.Part
}

// ErrCursor is wrapped if a cursor does not come from muster.
var ErrCursor = errors.New("want the `next` of another page")

// jobSelect reads a job, for scanJob.
const jobSelect = `select task, host, zone, customer, model, runbook, operator, outcome, class,
	exit, error, note, node, attempt, tries, due, started, finished, times, proof
	from jobs`

// Jobs lists jobs that have ended, the last one first, and jobs of one task by host, from a cursor
// on. next is the cursor of the next page; empty: there is none.
func (s *Store) Jobs(ctx context.Context, f Filter, cursor string, most int) (list []api.PastJob,
	next string, err error) {
	most = min(max(most, 1), api.PageMax)
	text, args, err := s.page(f, cursor, most+1)
	if err != nil {
		return nil, "", err
	}
	err = s.rows(ctx, "list jobs", text, args, func(scan func(...any) error) error {
		j, err := scanJob(scan)
		list = append(list, j)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	if len(list) > most {
		list = list[:most]
		next = cursorOf(list[most-1])
	}
	return list, next, s.addAsked(ctx, list)
}

// Proofs returns whose word the end of each job of a task is, by host. Jobs whose end nobody judged
// are left out.
func Proofs(ctx context.Context, s *Store, id jobs.TaskID) (map[string]api.Proof, error) {
	out := map[string]api.Proof{}
	err := s.rows(ctx, "proofs", "select host, proof from jobs where task = $1 and proof <> ''",
		[]any{string(id)}, func(scan func(...any) error) error {
			var host, proof string
			err := scan(&host, &proof)
			out[host] = api.Proof(proof)
			return err
		})
	return out, err
}

// page returns the query of a page, with its values.
func (s *Store) page(f Filter, cursor string, most int) (text string, args []any, err error) {
	w, err := f.where(cursor, s.at.file != "")
	if err != nil {
		return "", nil, err
	}
	order := "finished desc, task desc, host desc"
	if f.Task != "" {
		order = "host"
	}
	return fmt.Sprintf("%s %s order by %s limit %d", jobSelect, w.Text(), order, most), w.Args, nil
}

func cursorOf(j api.PastJob) string { return fmt.Sprintf("%d:%s", micros(j.Finished), j.ID) }

// where builds the condition. PostgreSQL finds the right index itself. SQLite has no statistics
// about the table, so it gets a + before the other columns, and a term that allows the index of
// jobs that did not succeed.
func (f Filter) where(cursor string, sqlite bool) (*part.Where, error) {
	w := &part.Where{}
	if name, one := part.Customer(f.Seen); one && f.Customer == "" {
		f.Customer = name // by which an index has the page in order
	}
	bad := f.Outcome != "" && f.Outcome != jobs.Succeeded
	used := 0
	for _, t := range []struct {
		column, value string
		alone         bool // no index has it behind another column
	}{{"task", string(f.Task), true}, {"host", f.Host, true}, {"customer", f.Customer, bad},
		{"operator", f.Operator, bad}, {"runbook", f.Runbook, bad}} {
		if t.value == "" {
			continue
		}
		if sqlite && used > 1 {
			t.column = "+" + t.column
		}
		w.And(t.column+" = ?", t.value)
		if used++; t.alone {
			used = 2
		}
	}
	if f.Outcome != "" {
		w.And("outcome = ?", string(f.Outcome))
	}
	if sqlite && bad {
		w.And("outcome <> 'succeeded'")
	}
	if used == 0 && !bad {
		w.And("attempt >= 0") // always true: it allows the index of times
	}
	if !f.From.IsZero() {
		w.And("finished >= ?", int64(jobs.MicrosOf(f.From)))
	}
	if !f.To.IsZero() {
		w.And("finished < ?", int64(jobs.MicrosOf(f.To)))
	}
	if text, values := part.Term(f.Seen, sqlite); text != "" {
		w.And(text, values...)
	}
	if cursor == "" {
		return w, nil
	}
	at, rest, _ := strings.Cut(cursor, ":")
	n, err := strconv.ParseInt(at, 10, 64)
	id, wrong := jobs.ParseID(rest)
	if err != nil || wrong != nil {
		return nil, fmt.Errorf("cursor: %w", ErrCursor)
	}
	if f.Task != "" {
		w.And("host > ?", id.Host())
		return w, nil
	}
	w.And("finished <= ?", n)
	w.And("(finished, task, host) < (?, ?, ?)", n, string(id.Task()), id.Host())
	return w, nil
}

func scanJob(scan func(...any) error) (api.PastJob, error) {
	var j api.PastJob
	var task, outcome, class, times string
	var exit sql.NullInt64
	var attempt, tries, due, started, finished int64
	err := scan(&task, &j.Host, &j.Zone, &j.Customer, &j.Model, &j.Runbook, &j.Operator, &outcome,
		&class, &exit, &j.Error, &j.Note, &j.Node, &attempt, &tries, &due, &started, &finished,
		&times, &j.Proof)
	if err != nil {
		return j, err
	}
	j.ID, j.State = jobs.NewID(jobs.TaskID(task), j.Host), jobs.Ended
	j.Outcome, j.Class = jobs.Outcome(outcome), jobs.Class(class)
	j.Attempt, j.Tries = int(attempt), int(tries)
	j.Due, j.Started, j.Finished = instant(due), instant(started), instant(finished)
	if exit.Valid {
		code := int(exit.Int64)
		j.ExitCode = &code
	}
	j.Times, err = readTimes(times)
	return j, err
}

// instant returns a stored instant.
func instant(n int64) jobs.Time {
	if n == 0 {
		return jobs.Time{}
	}
	return jobs.TimeOf(jobs.Micros(n))
}
