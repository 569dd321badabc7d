package backupfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Create writes a new file that only its owner can read. It has its name only once it is whole and
// on the disk: write may fail, and this machine may stop, and nothing with that name is there. A
// file that exists stays.
func Create(path string, write func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return taken(path)
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".part-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, os.Remove(f.Name()))
	}()
	if err = write(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	// A link replaces nothing, unlike a rename.
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return taken(path)
	} else if err != nil {
		return err
	}
	d, err := os.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func taken(path string) error {
	return fmt.Errorf("%s exists, and no backup replaces another: name a new file, or remove it", path)
}
