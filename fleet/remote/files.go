package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

const (
	// keyFileMax bounds a private key file; the largest RSA key in use has 13 kB.
	keyFileMax = 1 << 20

	// filesMax bounds how many files are kept parsed.
	filesMax = 1_000
)

// files keeps what was read from files, by path: private keys, certificates. A file
// that was changed is read again, so that a new key does not need a new process.
type files[T any] struct {
	mu   sync.Mutex
	kept map[string]file[T] // guarded by mu
}

type file[T any] struct {
	size     int64
	modified time.Time
	value    T
}

// load returns what parse makes of the file at path; what names it in errors.
func (f *files[T]) load(path, what string, parse func(text []byte) (T, error)) (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	var none T
	info, err := os.Stat(path)
	if err != nil {
		return none, fmt.Errorf("%s: %w", what, err)
	}
	kept, known := f.kept[path]
	if known && kept.size == info.Size() && kept.modified.Equal(info.ModTime()) {
		return kept.value, nil
	}
	text, err := readFile(path, info)
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

func readFile(path string, info fs.FileInfo) ([]byte, error) {
	// Opening a named pipe would wait for its writer, maybe for ever.
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, keyFileMax))
}

// readSecret reads the first line of a file that nobody else may read.
func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("passphrase: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("passphrase file %s has mode %04o, so others can use it: "+
			"chmod 400 %s", path, mode, path)
	}
	text, err := readFile(path, info)
	if err != nil {
		return nil, fmt.Errorf("passphrase file %s: %w", path, err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) == 0 {
		return nil, fmt.Errorf("passphrase file %s is empty: want the passphrase in its first line", path)
	}
	return line, nil
}
