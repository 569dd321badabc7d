package gitsource

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
)

// keepSmall packs a copy that has many files, or more bytes than it may have: a fetch of few
// objects leaves each of them as a file of its own. It removes a copy that stays too big, or whose
// fetch has failed half-way.
func (c *Copy) keepSmall(ctx context.Context, fetched bool) error {
	size, files := c.extent()
	if fetched && (files > c.Bounds.Loose || size > c.Bounds.Copy) {
		_ = c.pack(ctx) // what it has packed counts; the next fetch goes on
		if ctx.Err() != nil {
			return ctx.Err()
		}
		size, _ = c.extent()
	}
	if size <= c.Bounds.Copy {
		return nil
	}
	if err := os.RemoveAll(c.store()); err != nil {
		return err
	}
	return c.hugeWords()
}

func (c *Copy) hugeWords() error {
	return refuse("its history has more than %d MiB: want a repository for files of muster alone",
		c.Bounds.Copy>>20)
}

// extent returns the bytes and the number of the files of the copy.
func (c *Copy) extent() (size int64, files int) {
	_ = filepath.WalkDir(c.store(), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what goes meanwhile has no size
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
			files++
		}
		return nil
	})
	return size, files
}

// pack puts all objects that the copy needs into one file, and removes all others.
func (c *Copy) pack(ctx context.Context) error {
	how := call{time: readTime, most: printsMax}
	if _, err := c.git(ctx, how, "repack", "-a", "-d", "--quiet"); err != nil {
		return err
	}
	_, err := c.git(ctx, how, "prune", "--expire=now")
	return err
}
