package settings

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"muster/internal/files"
)

// watched is a file that is read again whenever it has changed. As long as its bytes are the same,
// so is the value that parse made of them.
type watched[T any] struct {
	setting string // that names the file, for errors
	path    string
	max     int         // bytes
	bad     fs.FileMode // permissions that nobody may have
	parse   func([]byte) (T, error)

	mu   sync.Mutex
	info fs.FileInfo // as it was before it was read; nil: it was never read
	at   time.Time   // when that was
	data []byte
	last T
}

// settled is the age from which a file cannot change without a new time in its folder's entry, even
// where file systems count seconds.
const settled = 2 * time.Second

// get returns what the file says now.
func (w *watched[T]) get() (T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	info, err := files.Stat(w.path)
	if err == nil && w.info != nil && os.SameFile(info, w.info) && info.Size() == w.info.Size() &&
		info.Mode() == w.info.Mode() && info.ModTime().Equal(w.info.ModTime()) &&
		w.at.Sub(info.ModTime()) > settled {
		return w.last, nil
	}
	now := time.Now()
	made, data, err := w.read()
	if err != nil {
		w.info = nil
		var none T
		return none, err
	}
	w.info, w.at = info, now
	if w.data == nil || !bytes.Equal(data, w.data) {
		w.data, w.last = data, made
	}
	return w.last, nil
}

func (w *watched[T]) read() (made T, data []byte, err error) {
	data, info, err := files.Owned(w.path, w.max)
	if err != nil {
		return made, nil, fmt.Errorf("%s: %w", w.setting, err)
	}
	mode := info.Mode()
	if mode.Perm()&w.bad != 0 {
		return made, nil, fmt.Errorf("%s: %s has mode %04o, so others can %s it: chmod %o %s",
			w.setting, w.path, mode.Perm(), w.verb(), 0o644&^w.bad&^0o200, w.path)
	}
	if owner := ownerOf(info); owner != 0 && owner != os.Geteuid() {
		return made, nil, fmt.Errorf("%s: %s belongs to uid %d: want root, or the user of this process",
			w.setting, w.path, owner)
	}
	if made, err = w.parse(data); err != nil {
		return made, nil, err
	}
	return made, data, nil
}

// verb returns the word for the deed that the permissions would let others do.
func (w *watched[T]) verb() string {
	if w.bad&0o044 == 0 {
		return "change"
	}
	return "use"
}

// ownerOf returns the uid of the owner of a file; 0: it is not known.
func ownerOf(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return 0
}
