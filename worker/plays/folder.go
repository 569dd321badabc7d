package plays

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster/internal/proc"
	"muster/worker/playbook"
)

const (
	// prefix begins the names of the private folders that [RemoveLeft] judges.
	prefix = "play."
	// lockName is the file in a private folder that its process keeps locked.
	lockName = "lock"
)

// A folder is the private folder of one play. It may hold passwords.
type folder struct {
	dir  string
	lock *proc.LockFile
}

// newFolder makes a private folder. Blanks in its path would part the options of OpenSSH.
func newFolder(in string) (*folder, error) {
	if strings.ContainsAny(in, " \t\n\"'\\$%") {
		return nil, fmt.Errorf("node.dir: the path %q has blanks or quotes, which OpenSSH does not take",
			in)
	}
	if err := proc.OwnDir(in); err != nil {
		return nil, err
	}
	// The folder gets its name once it is locked: RemoveLeft must not meet it before.
	early, err := os.MkdirTemp(in, "new.")
	if err != nil {
		return nil, err
	}
	lock, err := proc.Lock(filepath.Join(early, lockName))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(early))
	}
	f := &folder{filepath.Join(in, prefix+strings.TrimPrefix(filepath.Base(early), "new.")), lock}
	if err := os.Rename(early, f.dir); err != nil {
		return nil, errors.Join(err, lock.Free(), os.RemoveAll(early))
	}
	return f, nil
}

// write writes the files of a play.
func (f *folder) write(files map[string]playbook.File) error {
	for name, file := range files {
		to := filepath.Join(f.dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, []byte(file.Text), file.Mode); err != nil {
			return err
		}
	}
	return nil
}

// remove removes the folder with all that is in it. RemoveLeft tries again what fails here.
func (f *folder) remove() { _ = errors.Join(os.RemoveAll(f.dir), f.lock.Free()) }

// RemoveLeft removes the private folders whose worker was killed together with its watcher, and
// returns their number. It leaves those of workers that live. A playbook that has outlived both is
// killed first: its job has ended, so another one may work on the same host.
func RemoveLeft(in string) (removed int, err error) {
	entries, err := os.ReadDir(in)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err := errors.Join(err, proc.OwnDir(in)); err != nil {
		return 0, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.IsDir() {
			continue
		}
		dir := filepath.Join(in, e.Name())
		lock, lockErr := proc.Lock(filepath.Join(dir, lockName))
		var running *proc.LockedError
		switch {
		case errors.As(lockErr, &running), errors.Is(lockErr, fs.ErrNotExist):
			continue // it runs, or is gone
		case lockErr != nil:
			err = errors.Join(err, lockErr)
			continue
		}
		if alive := proc.KillNaming(dir); alive != nil { // the folder stays, so the next look tries again
			err = errors.Join(err, fmt.Errorf("%s: %w", dir, alive), lock.Free())
			continue
		}
		if gone := errors.Join(os.RemoveAll(dir), lock.Free()); gone != nil {
			err = errors.Join(err, gone)
			continue
		}
		removed++
	}
	return removed, err
}
