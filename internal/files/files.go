package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// patience bounds the time for a file. A local file takes no time; a network file system that
	// does not answer may take for ever.
	patience = 10 * time.Second
	// stuckMax bounds the readings under way, because each one that hangs keeps a thread.
	stuckMax = 64
)

// underWay has an element for each reading that has not ended.
var underWay = make(chan struct{}, stuckMax)

// Read reads a regular file of at most so many bytes, through symbolic links. Its errors never
// repeat what is in the file; those of the system keep their meaning, such as fs.ErrNotExist.
func Read(path string, most int) ([]byte, error) {
	data, _, err := Private(path, most)
	return data, err
}

// Private is Read for a file whose permissions matter: the mode is that of the file which was
// read.
func Private(path string, most int) ([]byte, fs.FileMode, error) {
	data, info, err := Owned(path, most)
	if err != nil {
		return nil, 0, err
	}
	return data, info.Mode(), nil
}

// Owned is Private for a file whose owner matters, too: all that is known of it is of the file
// which was read, whatever the path leads to before and after.
func Owned(path string, most int) ([]byte, fs.FileInfo, error) {
	out, err := within(patience, path, func() (content, error) { return read(path, most) })
	return out.data, out.info, err
}

// Within is Owned for a file below a folder. No symbolic link leads out of the folder.
func Within(folder, name string, most int) ([]byte, fs.FileInfo, error) {
	out, err := within(patience, folder, func() (content, error) {
		root, err := os.OpenRoot(folder)
		if err != nil {
			return content{}, err
		}
		defer root.Close()
		return readIn(root, name, most)
	})
	return out.data, out.info, err
}

func readIn(root *os.Root, name string, most int) (content, error) {
	path := filepath.Join(root.Name(), name)
	// To open a device may do something, so it is not opened to look at it.
	info, err := root.Stat(name)
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return content{}, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return content{}, err
	}
	return readAll(f, info, most)
}

type content struct {
	data []byte
	info fs.FileInfo
}

// within does something that may hang, and leaves it alone when it takes too long.
func within[T any](bound time.Duration, path string, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	late := time.NewTimer(bound)
	defer late.Stop()
	away := result{err: fmt.Errorf("%s cannot be read within %s: its file system does not answer",
		path, bound)}
	select {
	case underWay <- struct{}{}:
	case <-late.C:
		return away.value, away.err
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-underWay }()
		v, err := do()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-late.C:
		return away.value, away.err
	}
}

func read(path string, most int) (content, error) {
	f, info, err := Open(path)
	if err != nil {
		return content{}, err
	}
	defer f.Close()
	return readAll(f, info, most)
}

func readAll(f *os.File, info fs.FileInfo, most int) (content, error) {
	if info.Size() > int64(most) {
		return content{}, tooLarge(f.Name(), most)
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	switch {
	case err != nil:
		return content{}, err
	case len(data) > most: // it grows
		return content{}, tooLarge(f.Name(), most)
	}
	return content{data, info}, nil
}

func tooLarge(path string, most int) error {
	return fmt.Errorf("%s has more than %d bytes", path, most)
}

// Open opens a regular file for reading; nothing else, however the path changes meanwhile. It
// does not wait, but for the file system.
func Open(path string) (*os.File, fs.FileInfo, error) {
	// To open a device may do something, so it is not opened to look at it.
	info, err := os.Stat(path)
	var no *fs.PathError
	if errors.As(err, &no) {
		no.Op = "open"
	}
	if err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = regular(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func regular(path string, info fs.FileInfo) error {
	kinds := map[fs.FileMode]string{fs.ModeDir: "folder", fs.ModeNamedPipe: "named pipe",
		fs.ModeSocket: "socket", fs.ModeDevice: "device", fs.ModeDevice | fs.ModeCharDevice: "device"}
	if info.Mode().IsRegular() {
		return nil
	}
	kind, known := kinds[info.Mode().Type()]
	if !known {
		kind = "special file"
	}
	return &fs.PathError{Op: "open", Path: path,
		Err: fmt.Errorf("it is a %s, not a regular file", kind)}
}

// Stat says what is at a path, through symbolic links.
func Stat(path string) (fs.FileInfo, error) {
	return within(patience, path, func() (fs.FileInfo, error) { return os.Stat(path) })
}
