package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	reading "muster/internal/files"
)

const (
	// keyFileMax bounds a private key file; the largest RSA key in use has 13 kB.
	keyFileMax = 1 << 20

	// filesMax bounds how many parsed files are kept.
	filesMax = 1_000
)

// files caches parsed files by path: private keys, certificates. It reads a changed file
// again, so that a new key does not need a new process.
type files[T any] struct {
	mu   sync.Mutex
	kept map[string]file[T] // guarded by mu
}

type file[T any] struct {
	size     int64
	modified time.Time
	value    T
}

// load returns the parsed file at path; what names it in errors.
func (f *files[T]) load(path, what string, parse func(text []byte) (T, error)) (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	var none T
	info, err := reading.Stat(path)
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	kept, known := f.kept[path]
	if known && kept.size == info.Size() && kept.modified.Equal(info.ModTime()) {
		return kept.value, nil
	}
	text, err := readFile(path)
	if err != nil {
		return none, fmt.Errorf("%s %s: %w", what, path, err)
	}
	value, err := parse(text)
	if err != nil {
		return none, fmt.Errorf("%s %s: %w", what, path, err)
	}
	if f.kept == nil || len(f.kept) >= filesMax {
		f.kept = make(map[string]file[T])
	}
	f.kept[path] = file[T]{size: info.Size(), modified: info.ModTime(), value: value}
	return value, nil
}

func readFile(path string) ([]byte, error) {
	text, err := reading.Read(path, keyFileMax)
	var no *fs.PathError // the caller names the path
	if errors.As(err, &no) {
		err = no.Err
	}
	return text, bare(err)
}

// KeyInTheOpen returns an error if others can read a private key on this machine. It returns nil
// if the file does not exist here. Muster does not log in with such a key.
func KeyInTheOpen(path string) error { return private(path) }

// private refuses a key that others can read, as ssh does, because whoever has read it once can
// log in to every host without a trace. A key that belongs to another user may be readable for
// its group, so that root can keep the key of a service.
func private(path string) error {
	info, err := reading.Stat(path)
	if err != nil {
		return nil // reading the file reports that
	}
	mode, mask := info.Mode().Perm(), fs.FileMode(0o007)
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) == os.Getuid() {
		mask = 0o077
	}
	if info.Mode().IsRegular() && mode&mask != 0 {
		return fmt.Errorf("private key %s has mode %04o, so others can use it: chmod 600 %s", path,
			mode, path)
	}
	return nil
}

// readSecret returns the first line of a file that no other user may read.
func readSecret(path string) ([]byte, error) {
	text, mode, err := reading.Private(path, keyFileMax)
	if err != nil {
		return nil, fmt.Errorf("passphrase: %w", err)
	}
	if mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("passphrase file %s has mode %04o, so others can use it: "+
			"chmod 400 %s", path, mode.Perm(), path)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) == 0 {
		return nil, fmt.Errorf("passphrase file %s is empty: want the passphrase in its first line", path)
	}
	return line, nil
}
