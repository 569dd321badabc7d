// Package cache keeps the stored contents that the workers of a node send to hosts as files, so
// that the node reads each content only once.
//
// Floor 2: may import internal/proc, jobs.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muster/internal/proc"
	"muster/jobs"
)

// Config says where a node keeps the stored contents that its workers send.
type Config struct {
	Dir string `json:"dir"` // of the node; shared by all its workers
	Max int64  `json:"max"` // bytes, beside the content that is in use
}

// Source has the stored contents. It checks the contents that it writes, and its errors wrap
// jobs.ErrNoBlob and jobs.ErrBadBlob.
type Source interface {
	ReadBlob(ctx context.Context, sum string, w io.Writer) error
}

// Cache keeps stored contents as files, so that a node gets each only once. It is safe
// for concurrent use, also by many processes.
type Cache struct {
	cfg    Config
	source Source

	mu   sync.Mutex
	good map[string]fs.FileInfo // files whose content was checked; guarded by mu
}

// New makes a cache. Its folder is made when it is first needed.
func New(c Config, s Source) *Cache {
	return &Cache{cfg: c, source: s, good: map[string]fs.FileInfo{}}
}

// Open opens a content of so many bytes. The bytes that a caller reads have the checksum that it
// asked for.
func (c *Cache) Open(ctx context.Context, sum string, size int64) (io.ReadSeekCloser, error) {
	if f := c.there(sum, size); f != nil {
		return f, nil
	}
	if err := proc.OwnDir(c.cfg.Dir); err != nil {
		return nil, err
	}
	// One of all processes fetches it. There are few locks, because their files stay.
	lock, err := proc.WaitFree(ctx, filepath.Join(c.cfg.Dir, "lock-"+sum[:1]))
	if err != nil {
		return nil, err
	}
	defer lock.Free()
	if f := c.there(sum, size); f != nil {
		return f, nil
	}
	if err := c.fetch(ctx, sum, size); err != nil {
		return nil, err
	}
	if f := c.there(sum, size); f != nil {
		return f, c.trim(sum)
	}
	return nil, fmt.Errorf("%s: the file was there, and somebody removed or changed it", c.path(sum))
}

func (c *Cache) path(sum string) string { return filepath.Join(c.cfg.Dir, sum) }

// usedMark ends the name of the file beside each content that has the time of its last use.
const usedMark = ".used"

// there opens the file of a content; nil if there is none, or a damaged one.
func (c *Cache) there(sum string, size int64) *os.File {
	f, err := os.Open(c.path(sum))
	if err != nil {
		return nil
	}
	if err := c.check(f, sum, size); err != nil {
		f.Close()
		return nil
	}
	// The content counts also if the time of its use cannot be written.
	if mark, err := os.OpenFile(c.path(sum)+usedMark, os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		mark.Close()
		now := time.Now()
		_ = os.Chtimes(mark.Name(), now, now)
	}
	return f
}

// check compares the checksum of a file with its name, unless this process did so before and nobody
// has changed the file since.
func (c *Cache) check(f *os.File, sum string, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c.mu.Lock()
	known := c.good[sum]
	c.mu.Unlock()
	switch {
	case info.Size() != size:
		return jobs.ErrBadBlob
	case known != nil && os.SameFile(known, info) && known.ModTime().Equal(info.ModTime()):
		return nil
	}
	got := sha256.New()
	if _, err := io.Copy(got, f); err != nil {
		return err
	}
	if hex.EncodeToString(got.Sum(nil)) != sum {
		return jobs.ErrBadBlob
	}
	c.mu.Lock()
	c.good[sum] = info
	c.mu.Unlock()
	_, err = f.Seek(0, io.SeekStart)
	return err
}

// fetch gets a content. The caller has its lock.
func (c *Cache) fetch(ctx context.Context, sum string, size int64) error {
	part := c.path(sum) + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = c.source.ReadBlob(ctx, sum, &bounded{f, size})
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(part, c.path(sum))
	}
	if err != nil {
		_ = os.Remove(part) // the next try overwrites it
	}
	return err
}

// bounded writes so many bytes and no more.
type bounded struct {
	to   io.Writer
	left int64
}

// Write writes p, or fails.
func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, fmt.Errorf("%w: it is longer than the task says", jobs.ErrBadBlob)
	}
	b.left -= int64(len(p))
	return b.to.Write(p)
}

// trim removes the contents that nobody used for longest, until the rest fits, but never the
// content in hand. A process that has one of them open can still read it.
func (c *Cache) trim(inHand string) error {
	entries, err := os.ReadDir(c.cfg.Dir)
	if err != nil {
		return err
	}
	type content struct {
		name string
		size int64
		used time.Time
	}
	var all []content
	total := int64(0)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || len(e.Name()) != 2*sha256.Size {
			continue // gone meanwhile, or a mark or a lock
		}
		used := info.ModTime()
		if mark, err := os.Stat(c.path(e.Name()) + usedMark); err == nil {
			used = mark.ModTime()
		}
		total += info.Size()
		all = append(all, content{e.Name(), info.Size(), used})
	}
	slices.SortFunc(all, func(a, b content) int {
		if d := a.used.Compare(b.used); d != 0 {
			return d
		}
		return strings.Compare(a.name, b.name)
	})
	for _, one := range all {
		if total <= c.cfg.Max || one.name == inHand {
			continue
		}
		if err := os.Remove(c.path(one.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = os.Remove(c.path(one.name) + usedMark) // without it the file's own time counts
		total -= one.size
	}
	return nil
}
