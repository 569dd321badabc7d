package files

import (
	"errors"
	"io/fs"
	"os"
	"sync"
)

// An Opened is a file that some part of the process keeps open, and which does not notice when
// somebody removes or replaces it. SQLite does not: it goes on with a file that has no name, and
// all of that is lost with the process.
type Opened struct {
	Path string // empty: there is none

	mu  sync.Mutex
	was os.FileInfo // nil: Take has not been called
}

// Take notes which file has the name now.
func (f *Opened) Take() error {
	if f.Path == "" {
		return nil
	}
	info, err := os.Stat(f.Path)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.was = info
	return err
}

// Check returns an error if the file with this name is not the one that Take has noted.
func (f *Opened) Check() error {
	f.mu.Lock()
	was := f.was
	f.mu.Unlock()
	if was == nil {
		return nil
	}
	switch is, err := os.Stat(f.Path); {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("it is gone, and what is left of it gets nothing more: restart the server")
	case err == nil && !os.SameFile(was, is):
		return errors.New("another file has its name: restart the server, which takes that one")
	default:
		return err
	}
}
