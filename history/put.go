package history

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/api"
	"muster/jobs"
)

// ErrMoved is wrapped if another server has stored a part of the stream since the position was
// read.
var ErrMoved = errors.New("somebody else has read on meanwhile")

// Position returns how far the stream of a zone was read.
func (s *Store) Position(ctx context.Context, zone string) (api.Position, error) {
	p := api.Position{Zone: zone}
	err := s.rows(ctx, "position", "select position, entries, events, at from streams where zone = $1",
		[]any{zone}, func(scan func(...any) error) error {
			var at int64
			err := scan(&p.Last, &p.Entries, &p.Events, &at)
			p.At = jobs.TimeOf(jobs.Micros(at))
			return err
		})
	return p, err
}

// Put stores the whole batch or nothing. It returns the estimates that changed. The error wraps
// ErrMoved if the batch does not begin at the position.
func (s *Store) Put(ctx context.Context, b Batch, now time.Time) ([]Estimate, error) {
	var changed []Estimate
	err := s.tx(ctx, "store events", func(tx *sql.Tx) error {
		if err := advance(ctx, tx, b, now); err != nil {
			return err
		}
		var err error
		changed, err = s.put(ctx, tx, b, now)
		return err
	})
	if err != nil {
		return nil, err
	}
	return changed, nil
}

// advance moves the position, if the batch begins there: so if two historians read the same part,
// one of them is refused.
func advance(ctx context.Context, tx *sql.Tx, b Batch, now time.Time) error {
	at := int64(jobs.MicrosOf(now))
	text, args := `update streams set position = $1, entries = $2, events = events + $3, at = $4
		where zone = $5 and position = $6`, []any{b.Last, b.Entries, len(b.Events), at, b.Zone, b.After}
	if b.After == "" {
		text = `insert into streams (position, entries, events, at, zone) values ($1, $2, $3, $4, $5)
			on conflict (zone) do nothing`
		args = args[:5]
	}
	r, err := tx.ExecContext(ctx, text, args...)
	if err != nil {
		return fmt.Errorf("streams: %w", err)
	}
	if n, err := r.RowsAffected(); err != nil || n != 1 {
		return errors.Join(ErrMoved, err)
	}
	return nil
}

func (s *Store) put(ctx context.Context, tx *sql.Tx, b Batch, now time.Time) ([]Estimate, error) {
	if b.Gap != nil {
		if err := putGap(ctx, tx, *b.Gap, now); err != nil {
			return nil, err
		}
	}
	f := attemptsOf(b)
	taken, against, err := s.ends(ctx, tx, b.Ended, b.Outputs)
	if err != nil {
		return nil, err
	}
	for _, c := range against {
		if b.Contradicted != nil {
			b.Contradicted(c)
		}
	}
	b.Ended = taken
	if err := (*s.also.Load())(ctx, tx, b); err != nil {
		return nil, err
	}
	for _, one := range []struct {
		table
		rows [][]any
	}{{eventTable, append(eventRows(b.Events), contradictionRows(b, against)...)},
		{taskTable, taskRows(b.Tasks)}, {begun, f.begun}, {ended, f.ended}, {stepTable, f.steps}} {
		if err := s.insert(ctx, tx, one.table, one.rows); err != nil {
			return nil, err
		}
	}
	for _, e := range f.left {
		_, err := tx.ExecContext(ctx, `update attempts set ended = $1, how = $2 where task = $3 and
			host = $4 and attempt = (select max(attempt) from attempts where task = $3 and host = $4)`,
			int64(e.at), e.how, string(e.job.Task()), e.job.Host())
		if err != nil {
			return nil, fmt.Errorf("attempts: %w", err)
		}
	}
	return s.learn(ctx, tx, taken, now)
}

// Reconcile stores a task and its ended jobs as Redis knows them, with what their hosts said, but
// without events: it fills in what a gap has left out.
func (s *Store) Reconcile(ctx context.Context, t jobs.TaskInfo, ended []api.PastJob,
	said map[jobs.ID]jobs.Output) error {
	return s.tx(ctx, "store a task", func(tx *sql.Tx) error {
		err := (*s.also.Load())(ctx, tx, Batch{Tasks: []jobs.TaskInfo{t}, Ended: ended})
		if err != nil {
			return err
		}
		if err = s.insert(ctx, tx, taskTable, taskRows([]jobs.TaskInfo{t})); err != nil {
			return err
		}
		// Contradictions were recorded when their events arrived.
		_, _, err = s.ends(ctx, tx, ended, said)
		return err
	})
}

func putGap(ctx context.Context, tx *sql.Tx, g api.Gap, now time.Time) error {
	_, err := tx.ExecContext(ctx, `insert into gaps (zone, after, first, entries, at, note)
		values ($1, $2, $3, $4, $5, $6)`, g.Zone, g.After, g.First, g.Entries,
		int64(jobs.MicrosOf(now)), g.Note)
	if err != nil {
		return fmt.Errorf("gaps: %w", err)
	}
	return nil
}

// micros returns the stored form of an instant; 0 if it is not set.
func micros(t jobs.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return int64(jobs.MicrosOf(t.Time))
}

// clean returns a text that both databases accept: PostgreSQL allows no NUL in texts, and wants
// UTF-8, but hosts may send any bytes.
func clean(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

func eventRows(list []jobs.Happening) [][]any {
	out := make([][]any, len(list))
	for i, h := range list {
		detail := ""
		if h.Detail != nil {
			// It came from JSON, so it can be encoded again.
			text, _ := json.Marshal(h.Detail)
			detail = string(text)
		}
		out[i] = []any{h.Zone, h.ID, micros(h.At), clean(h.Event), clean(h.Object),
			string(TaskOf(h.Object)), clean(detail), clean(whoOf(h.Detail))}
	}
	return out
}

func taskRows(list []jobs.TaskInfo) [][]any {
	var out [][]any
	at := map[string]int{}
	for _, t := range list {
		put(&out, at, string(t.Task), []any{string(t.Task), clean(t.Runbook), clean(t.Operator),
			clean(t.On), strings.Join(t.Zones, ","), t.Inventory, clean(t.Schedule), micros(t.Tick),
			string(t.Priority), string(t.RetryOf), clean(t.Cancelled), string(t.State), int64(t.Total),
			micros(t.Submitted), micros(t.Started), micros(t.Finished), provenNumber(t), clean(t.Reason),
			clean(ranText(t.Ran))})
	}
	return out
}

func jobRows(list []api.PastJob) [][]any {
	var out [][]any
	at := map[string]int{}
	for _, j := range list {
		var exit any
		if j.ExitCode != nil {
			exit = int64(*j.ExitCode)
		}
		put(&out, at, string(j.ID), []any{string(j.ID.Task()), j.ID.Host(), j.Zone, clean(j.Customer),
			clean(j.Model), clean(j.Runbook), clean(j.Operator), string(j.Outcome), string(j.Class), exit,
			clean(j.Error), clean(j.Note), clean(j.Node), int64(j.Attempt), int64(j.Tries), micros(j.Due),
			micros(j.Started), micros(j.Finished), timesText(j.Times), string(j.Proof)})
	}
	return out
}
