package scribe

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"muster/audit"
	"muster/internal/proc"
)

const (
	// spoolMax bounds a spool: behind it orders are refused as if the disk were full.
	spoolMax = 256 << 20 // bytes
	// spools bounds how many servers of one machine share a folder.
	spools = 32
	// drainPart is the number of entries that leave the spool in one transaction.
	drainPart = 200
)

// spool is a file of drafts, a line each. A process has one of its own, and a lock on it; the
// next process that gets the lock brings the rest into the tree. Only one goroutine uses it.
type spool struct {
	dir   string
	lock  *proc.LockFile // nil: not open yet
	f     *os.File
	size  int64
	lines atomic.Int64
}

func (s *spool) len() int { return int(s.lines.Load()) }

// open takes the first file that no other process has.
func (s *spool) open() error {
	if s.f != nil {
		return nil
	}
	if err := proc.OwnDir(s.dir); err != nil {
		return err
	}
	for i := range spools {
		path := filepath.Join(s.dir, fmt.Sprintf("spool-%d.jsonl", i+1))
		lock, err := proc.Lock(path + ".lock")
		var locked *proc.LockedError
		if errors.As(err, &locked) {
			continue
		}
		if err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return errors.Join(err, lock.Free())
		}
		s.f, s.lock = f, lock
		if err := s.recover(); err != nil {
			return errors.Join(err, s.close())
		}
		return nil
	}
	return fmt.Errorf("%s: %d processes have a spool there", s.dir, spools)
}

// recover counts the lines of an earlier process, and cuts a last one that it did not finish: its
// order was not carried out.
func (s *spool) recover() error {
	if err := syncDir(s.dir); err != nil {
		return err
	}
	data, err := io.ReadAll(io.LimitReader(s.f, spoolMax+1))
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if err := s.f.Truncate(int64(whole)); err != nil {
		return err
	}
	s.size = int64(whole)
	s.lines.Store(int64(bytes.Count(data[:whole], []byte("\n"))))
	return nil
}

// syncDir makes the names in a folder durable.
func syncDir(path string) error {
	d, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// add makes drafts durable, all or none.
func (s *spool) add(list []audit.Draft) error {
	if err := s.open(); err != nil {
		return err
	}
	var text bytes.Buffer
	for _, d := range list {
		line, err := d.Line()
		if err != nil {
			return err
		}
		text.Write(line)
		text.WriteByte('\n')
	}
	if s.size+int64(text.Len()) > spoolMax {
		return fmt.Errorf("%s is full: %d bytes", s.f.Name(), s.size)
	}
	_, err := s.f.WriteAt(text.Bytes(), s.size)
	if err == nil {
		err = s.f.Sync()
	}
	if err != nil {
		// A half must not stay: what follows it would be a part of it.
		return errors.Join(err, s.f.Truncate(s.size))
	}
	s.size += int64(text.Len())
	s.lines.Add(int64(len(list)))
	return nil
}

// drain hands all drafts over, in their order, and empties the spool. After an error all stay:
// they may be handed over twice.
func (s *spool) drain(add func([]audit.Draft) error) (n int, err error) {
	if s.f == nil {
		// A folder that cannot be used is no reason against SQL.
		if err := s.open(); err != nil {
			return 0, nil
		}
	}
	if s.size == 0 {
		return 0, nil
	}
	var part []audit.Draft
	var bad int
	lines := bufio.NewScanner(io.NewSectionReader(s.f, 0, s.size))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		d, err := audit.ParseDraft(lines.Bytes())
		if err != nil {
			bad++
			continue
		}
		if part = append(part, d); len(part) == drainPart {
			if err := add(part); err != nil {
				return n, err
			}
			n, part = n+len(part), nil
		}
	}
	if err := errors.Join(lines.Err(), add(part)); err != nil {
		return n, err
	}
	n += len(part)
	if bad > 0 {
		// Nobody but a damaged disk or an intruder makes such lines: a person has to see them.
		return n, s.setAside(bad)
	}
	return n, s.empty()
}

func (s *spool) empty() error {
	if err := errors.Join(s.f.Truncate(0), s.f.Sync()); err != nil {
		return err
	}
	s.size = 0
	s.lines.Store(0)
	return nil
}

// setAside gives a spool with lines that are no drafts another name, so that it is not lost.
func (s *spool) setAside(bad int) error {
	name := s.f.Name()
	for i := 1; ; i++ {
		other := fmt.Sprintf("%s.bad-%d", name, i)
		err := os.Link(name, other)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil {
			err = os.Remove(name)
		}
		if err != nil {
			return err
		}
		return errors.Join(fmt.Errorf("%s has %d lines that cannot be read, and was kept as %s", name,
			bad, other), s.close())
	}
}

func (s *spool) close() error {
	err := errors.Join(s.f.Close(), s.lock.Free())
	s.f, s.lock, s.size = nil, nil, 0
	s.lines.Store(0)
	return err
}
