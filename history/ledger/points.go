package ledger

import (
	"context"
	"fmt"
	"time"

	"muster/audit"
	"muster/history"
	"muster/jobs"
)

// A Point is a signed checkpoint as it is kept.
type Point struct {
	Size int64
	At   time.Time
	Note string
}

// AddPoint keeps a checkpoint. One of that size stays as it is.
func (l *Ledger) AddPoint(ctx context.Context, p Point) error {
	return l.h.Exec(ctx, "audit: keep a checkpoint", history.Statement{
		Text: `insert into audit_checkpoints (size, at, note) values ($1, $2, $3)
			on conflict (size) do nothing`, Args: []any{p.Size, int64(jobs.MicrosOf(p.At)), p.Note}})
}

// Points calls f for the checkpoints of more than so many entries, the smallest first, at most so
// many of them; 0: all.
func (l *Ledger) Points(ctx context.Context, after int64, most int, f func(Point) error) error {
	query := "select size, at, note from audit_checkpoints where size > $1 order by size"
	if most > 0 {
		query += fmt.Sprintf(" limit %d", most)
	}
	return l.points(ctx, query, []any{after}, f)
}

func (l *Ledger) points(ctx context.Context, query string, args []any, f func(Point) error) error {
	return l.h.Rows(ctx, "audit: read checkpoints", query, args, func(scan func(...any) error) error {
		var p Point
		var at int64
		if err := scan(&p.Size, &at, &p.Note); err != nil {
			return err
		}
		p.At = jobs.TimeOf(jobs.Micros(at)).Time
		return f(p)
	})
}

// NewestPoint returns the checkpoint of the most entries; of size 0 if there is none.
func (l *Ledger) NewestPoint(ctx context.Context) (newest Point, err error) {
	err = l.points(ctx, "select size, at, note from audit_checkpoints order by size desc limit 1", nil,
		func(p Point) error {
			newest = p
			return nil
		})
	return newest, err
}

// PointOf returns the smallest checkpoint that has an entry.
func (l *Ledger) PointOf(ctx context.Context, seq int64) (Point, error) {
	var found Point
	err := l.Points(ctx, seq, 1, func(p Point) error {
		found = p
		return nil
	})
	if err == nil && found.Size == 0 {
		err = audit.ErrTooEarly
	}
	return found, err
}

// A Sent says how far a sink has the log.
type Sent struct {
	Sink        string
	Entries     int64 // the next one to be sent
	Checkpoints int64 // size of the last one that was sent
	At          time.Time
	Since       time.Time // when the present trouble began; zero: there is none
	Trouble     string
}

// Sinks returns how far each sink has the log.
func (l *Ledger) Sinks(ctx context.Context) (list []Sent, err error) {
	err = l.h.Rows(ctx, "audit: read sinks", `select sink, entries, checkpoints, at, since, trouble
		from audit_sinks order by sink`, nil, func(scan func(...any) error) error {
		var s Sent
		var at, since int64
		if err := scan(&s.Sink, &s.Entries, &s.Checkpoints, &at, &since, &s.Trouble); err != nil {
			return err
		}
		s.At, s.Since = instant(at), instant(since)
		list = append(list, s)
		return nil
	})
	return list, err
}

func instant(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return jobs.TimeOf(jobs.Micros(at)).Time
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return int64(jobs.MicrosOf(t))
}

// SaveSent keeps how far a sink has the log.
func (l *Ledger) SaveSent(ctx context.Context, s Sent) error {
	return l.h.Exec(ctx, "audit: keep what was sent", history.Statement{
		Text: `insert into audit_sinks (sink, entries, checkpoints, at, since, trouble)
			values ($1, $2, $3, $4, $5, $6) on conflict (sink) do update set
			entries = excluded.entries, checkpoints = excluded.checkpoints, at = excluded.at,
			since = excluded.since, trouble = excluded.trouble`,
		Args: []any{s.Sink, s.Entries, s.Checkpoints, micros(s.At), micros(s.Since), s.Trouble}})
}
