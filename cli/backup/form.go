package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"muster/history/snapshot"
	"muster/internal/backupfile"
	"muster/jobs/queue/archive"
)

// The kinds of the parts of a backup, beside the head.
const (
	partDump    backupfile.Kind = 'K' // key, ms until it expires, DUMP
	partFields  backupfile.Kind = 'F' // key, then names and values
	partTable   backupfile.Kind = 'T' // JSON
	partRows    backupfile.Kind = 'V' // a row each
	partSummary backupfile.Kind = 'Z' // JSON; behind all others
)

// formNow is the number of this form of a backup.
const formNow = 1

// head says what a backup is.
type head struct {
	Form         int       `json:"form"`
	Version      string    `json:"version"` // of muster
	Installation string    `json:"installation"`
	Made         time.Time `json:"made"`
	Redis        string    `json:"redis"`   // its version
	Tables       int64     `json:"tables"`  // version of the tables
	History      bool      `json:"history"` // there was one; else the tables have the audit log only
	Least        int       `json:"least"`   // the least form of Redis' data that its reader must know
	// Quiet says that no node beat and no server had a duty.
	Quiet bool `json:"quiet"`
}

// summary says what a backup has.
type summary struct {
	Zones []string      `json:"zones"`
	Keys  int           `json:"keys"`
	Rows  int           `json:"rows"`
	Pause time.Duration `json:"pause_ns"` // Redis did nothing else for at most so long
}

// packer puts parts into a backup.
type packer struct {
	to   *backupfile.Writer
	rows [][]byte // that wait
	size int
	n    int // rows
}

// rowsBytes bounds a part of rows.
const rowsBytes = 1 << 20

func (p *packer) json(kind backupfile.Kind, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return p.to.Put(kind, text)
}

func (p *packer) record(r archive.Record) error {
	if r.Dump != nil {
		ttl := strconv.FormatInt(r.TTL.Milliseconds(), 10)
		return p.to.Put(partDump, []byte(r.Key), []byte(ttl), r.Dump)
	}
	fields := [][]byte{[]byte(r.Key)}
	for _, f := range r.Fields {
		fields = append(fields, []byte(f))
	}
	return p.to.Put(partFields, fields...)
}

// Table and Row make a packer a sink of tables.
func (p *packer) Table(t snapshot.Table) error {
	if err := p.flush(); err != nil {
		return err
	}
	return p.json(partTable, t)
}

// Row adds a row of the last table.
func (p *packer) Row(values []any) error {
	var row []byte
	for _, v := range values {
		var err error
		if row, err = snapshot.AppendValue(row, v); err != nil {
			return err
		}
	}
	p.rows, p.size, p.n = append(p.rows, row), p.size+len(row), p.n+1
	if p.size < rowsBytes {
		return nil
	}
	return p.flush()
}

func (p *packer) flush() error {
	if len(p.rows) == 0 {
		return nil
	}
	err := p.to.Put(partRows, p.rows...)
	p.rows, p.size = p.rows[:0], 0
	return err
}

// opened passes the parts of a backup on, as what they are.
type opened struct {
	head    func(head) error
	record  func(archive.Record) error
	table   func(snapshot.Table) error
	row     func([]any) error
	summary func(summary) error
}

var errPart = errors.New("a part of the backup has a form that is not known here")

// part passes one part on. Those that nobody wants are left out.
func (o opened) part(kind backupfile.Kind, fields [][]byte) error {
	switch {
	case kind == backupfile.Head && len(fields) == 1:
		return pass(fields[0], o.head)
	case kind == partSummary && len(fields) == 1:
		return pass(fields[0], o.summary)
	case kind == partTable && len(fields) == 1:
		return pass(fields[0], o.table)
	case kind == partRows:
		return o.rows(fields)
	case kind == partDump && len(fields) == 3 || kind == partFields && len(fields)%2 == 1:
		return o.key(kind, fields)
	}
	return errPart
}

func pass[T any](text []byte, to func(T) error) error {
	if to == nil {
		return nil
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("%w: %w", errPart, err)
	}
	return to(v)
}

func (o opened) rows(fields [][]byte) error {
	if o.row == nil {
		return nil
	}
	for _, f := range fields {
		values, err := snapshot.Values(f)
		if err != nil {
			return err
		}
		if err := o.row(values); err != nil {
			return err
		}
	}
	return nil
}

func (o opened) key(kind backupfile.Kind, fields [][]byte) error {
	if o.record == nil {
		return nil
	}
	r := archive.Record{Key: string(fields[0])}
	if kind == partFields {
		for _, f := range fields[1:] {
			r.Fields = append(r.Fields, string(f))
		}
		return o.record(r)
	}
	ms, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil || ms < 0 {
		return errPart
	}
	r.TTL, r.Dump = time.Duration(ms)*time.Millisecond, append([]byte{}, fields[2]...)
	return o.record(r)
}
