// Package memory keeps in a file, for all workers of a node, since when the last timetable that one
// of them has believed is in force. So no worker believes an earlier one, which somebody has put
// back into Redis.
//
// Floor 2: may import internal/files, internal/proc.
package memory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster/internal/files"
	"muster/internal/proc"
)

// A Times is the file. Several processes may use it at once.
type Times struct{ path string }

// NewTimes returns the file in a folder of the node, which is made when it is first needed.
func NewTimes(dir string) Times { return Times{filepath.Join(dir, "times")} }

// textMax bounds the bytes of the file.
const textMax = 100

// lockWait bounds the wait for another worker that writes.
const lockWait = time.Second

// Since returns the time; zero: none is kept.
func (t Times) Since() (time.Time, error) {
	text, err := files.Read(t.path, textMax)
	if errors.Is(err, os.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	since, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text)))
	if err != nil {
		return since, fmt.Errorf("%s: want a time; remove the file: %w", t.path, err)
	}
	return since, nil
}

// Remember keeps a time, unless a later one is kept. It replaces a file that cannot be read.
func (t Times) Remember(since time.Time) error {
	if kept, err := t.Since(); err == nil && !since.After(kept) {
		return nil
	}
	if err := proc.OwnDir(filepath.Dir(t.path)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	lock, err := proc.WaitFree(ctx, t.path+".lock")
	if err != nil {
		return err
	}
	defer lock.Free()
	if kept, err := t.Since(); err == nil && !since.After(kept) {
		return nil
	}
	next := t.path + ".next" // whoever has the lock alone writes it
	text := since.UTC().Format(time.RFC3339Nano) + "\n"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(next, t.path)
}
