package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/fleet/remote"
	"muster/internal/files"
	"muster/jobs"
	"muster/scripts"
)

func newBlob() *cobra.Command {
	c := &cobra.Command{
		Use:   "blob",
		Short: "Store files for uploads, so that every node has them",
		Long: `A blob is a file that is stored under its SHA-256, for uploads that are too large for
a task. A runbook names it (upload: {blob: sha256:…}), or an argument of type file does
(--arg image=sha256:…). "muster run --arg-file" stores a large file by itself.

It is kept while a task that has not ended needs it, and for blobs.grace afterwards.`,
		Example: `  muster blob put fw-7.4.bin
  muster blob ls
  muster blob get sha256:0f8e4a -f fw.bin
  muster blob rm sha256:0f8e4a`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBlobPut(), newBlobList(), newBlobGet(), newBlobRemove())
	return c
}

func newBlobPut() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:     "put FILE…",
		Short:   "Store files, and print their names; - is the standard input",
		Example: "  muster blob put fw-7.4.bin",
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, s *session, args []string) error {
		list := []jobs.Blob{}
		for _, path := range args {
			f, err := openBlobFile(ctx, path)
			if err != nil {
				return exit(exitUsage, err)
			}
			b, err := s.putBlob(ctx, f)
			f.close()
			if err != nil {
				return err
			}
			list = append(list, b)
			if !s.json {
				if err := s.write(scripts.BlobName(cell(b.SHA256)) + "\n"); err != nil {
					return err
				}
			}
		}
		if s.json {
			return s.writeJSON(list)
		}
		return nil
	})
}

func newBlobList() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:               "ls",
		Aliases:           []string{"list"},
		Short:             "List what is stored, and which tasks need it",
		Example:           "  muster blob ls\n  muster blob ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *session, _ []string) error {
		l, err := s.blobs(ctx)
		if err != nil {
			return err
		}
		g := newGrid("BLOB", ">SIZE", "NAME", "BY", "USED", "TASKS")
		for _, b := range l.Blobs {
			var tasks []string
			for _, t := range b.Tasks {
				tasks = append(tasks, cell(string(t)))
			}
			g.add(scripts.BlobName(cell(b.SHA256)), remote.ByteCount(b.Size), orDash(cell(b.Name)),
				orDash(cell(b.By)), ago(b.Used, s.now()), orDash(strings.Join(tasks, ",")))
		}
		if !s.json && len(l.Blobs) > 0 {
			s.say("%s of %s are taken", remote.ByteCount(l.Size), remote.ByteCount(l.Max))
		}
		return s.list(l.Blobs, g, "nothing is stored: `muster blob put FILE` stores a file")
	})
}

func newBlobGet() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "get BLOB",
		Short: "Write what is stored into a file or a pipe",
		Long: `The beginning of the name is enough, if it fits one blob only. A file appears when all
of it is there and its SHA-256 is right.`,
		Example: "  muster blob get sha256:0f8e4a -f fw.bin",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().StringVarP(&to, "file", "f", "", "`file` to write; without it the standard output")
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		if to == "" && s.outTerm {
			return exit(exitUsage, errors.New("a terminal is no place for it: say -f FILE, or pipe it"))
		}
		b, err := s.findBlob(ctx, args[0])
		if err != nil {
			return err
		}
		if to == "" {
			return s.getBlob(ctx, b, s.out)
		}
		part, err := os.CreateTemp(filepath.Dir(to), ".muster-*.part")
		if err != nil {
			return exit(exitUsage, err)
		}
		defer os.Remove(part.Name()) // not there any more if all went well
		if err := errors.Join(s.getBlob(ctx, b, part), part.Close()); err != nil {
			return err
		}
		return os.Rename(part.Name(), to)
	})
}

func newBlobRemove() *cobra.Command {
	var force bool
	c := &cobra.Command{
		Use:     "rm BLOB…",
		Aliases: []string{"remove"},
		Short:   "Remove what is stored",
		Example: "  muster blob rm sha256:0f8e4a",
		Args:    cobra.MinimumNArgs(1),
	}
	c.Flags().BoolVar(&force, "force", false, "also if tasks need it: their jobs will fail")
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		removed := []string{}
		for _, arg := range args {
			b, err := s.findBlob(ctx, arg)
			if err != nil {
				return err
			}
			q := url.Values{}
			if force {
				q.Set("force", "true")
			}
			if err := s.do(ctx, call{method: http.MethodDelete, path: blobPath(b.SHA256), query: q,
				bound: callTimeout}, nil); err != nil {
				return err
			}
			removed = append(removed, scripts.BlobName(b.SHA256))
		}
		if s.json {
			return s.writeJSON(map[string][]string{"removed": removed})
		}
		return s.write(cell(strings.Join(removed, " ")) + " removed\n")
	})
}

func blobPath(sum string) string { return "/v1/blobs/" + url.PathEscape(sum) }

func (c *client) blobs(ctx context.Context) (api.BlobList, error) {
	var l api.BlobList
	err := c.get(ctx, "/v1/blobs", nil, &l)
	l.Blobs = filled(l.Blobs)
	return l, err
}

// findBlob finds the one blob whose name begins so.
func (c *client) findBlob(ctx context.Context, name string) (jobs.Blob, error) {
	l, err := c.blobs(ctx)
	if err != nil {
		return jobs.Blob{}, err
	}
	begin := strings.ToLower(strings.TrimPrefix(name, "sha256:"))
	var found []jobs.Blob
	for _, b := range l.Blobs {
		if begin != "" && strings.HasPrefix(b.SHA256, begin) {
			found = append(found, b)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return jobs.Blob{}, exit(exitUsage, fmt.Errorf("no blob %q; `muster blob ls` lists them", name))
	}
	return jobs.Blob{}, exit(exitUsage, fmt.Errorf("%q is the beginning of %d blobs: give more of "+
		"the name", name, len(found)))
}

// slowest is how many bytes a second a way to the server must take at least.
const slowest = 50_000

// putBlob stores a file, unless it is stored already.
func (s *session) putBlob(ctx context.Context, f *blobFile) (jobs.Blob, error) {
	var b jobs.Blob
	q := url.Values{"size": {strconv.FormatInt(f.size, 10)}, "name": {f.name}}
	s.say("storing %s (%s)", cell(f.name), remote.ByteCount(f.size))
	err := s.do(ctx, call{method: http.MethodPut, path: blobPath(f.sum), query: q, content: f.File,
		size: f.size, bound: submitTimeout + time.Duration(f.size/slowest)*time.Second}, &b)
	return b, err
}

// getBlob writes a content, and fails if it is another.
func (s *session) getBlob(ctx context.Context, b jobs.Blob, to io.Writer) error {
	bound := submitTimeout + time.Duration(b.Size/slowest)*time.Second
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	r, err := s.send(ctx, call{method: http.MethodGet, path: blobPath(b.SHA256), bound: bound})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), r.Body)
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != b.SHA256 {
		err = jobs.ErrBadBlob
	}
	if err != nil {
		return fmt.Errorf("%s came to %s of %s: %w", scripts.BlobName(b.SHA256), remote.ByteCount(n),
			remote.ByteCount(b.Size), err)
	}
	return nil
}

// blobFile is a file that is to be stored.
type blobFile struct {
	*os.File
	sum, name string
	size      int64
	copied    bool // it is a copy of what cannot be read twice
}

// streamMax is more than a server takes, so that a stream without end does not fill the disk.
const streamMax = 4 << 30 // bytes

// openBlobFile opens a file and computes its checksum. What is no regular file, like a
// pipe, is copied first.
func openBlobFile(ctx context.Context, path string) (*blobFile, error) {
	name := filepath.Base(path)
	if path == "-" {
		name = "stdin"
	}
	opened, info, err := files.OpenGiven(ctx, path)
	if err != nil {
		return nil, err
	}
	f := &blobFile{File: opened, name: name}
	if err := f.prepare(ctx, info.Mode().IsRegular()); err != nil {
		f.close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

func (f *blobFile) prepare(ctx context.Context, regular bool) error {
	sum := sha256.New()
	var err error
	if regular {
		f.size, err = copyWithin(ctx, sum, f.File)
	} else {
		from := f.File
		defer files.CloseGiven(from)
		f.File, err = os.CreateTemp("", "muster-blob-")
		if err != nil {
			return err
		}
		f.copied = true
		f.size, err = copyWithin(ctx, io.MultiWriter(f.File, sum), io.LimitReader(from, streamMax+1))
		if err == nil && f.size > streamMax {
			err = fmt.Errorf("a stream of more than %s is no blob", remote.ByteCount(streamMax))
		}
	}
	if err != nil {
		return err
	}
	f.sum = hex.EncodeToString(sum.Sum(nil))
	_, err = f.Seek(0, io.SeekStart)
	return err
}

func copyWithin(ctx context.Context, to io.Writer, from io.Reader) (int64, error) {
	return files.Wait(ctx, func() (int64, error) { return io.Copy(to, from) })
}

// close closes the file, and removes a copy.
func (f *blobFile) close() {
	if f.File == nil {
		return
	}
	files.CloseGiven(f.File)
	if f.copied {
		os.Remove(f.Name())
	}
}

// takeLarge stores those files of --arg-file that are too large for a task, and names
// them in its arguments. A dry run stores nothing. What is wrong with a flag is left for
// submit to say.
func (s *session) takeLarge(ctx context.Context, f *runFlags) (end func(), err error) {
	var open []*blobFile
	end = func() {
		for _, b := range open {
			b.close()
		}
	}
	var small []string
	for _, text := range f.files {
		name, path, found := strings.Cut(text, "=")
		info, err := os.Stat(path)
		if !found || !files.Stream(path) && (err != nil || info.Size() <= scripts.InlineMax) {
			small = append(small, text)
			continue
		}
		b, err := openBlobFile(ctx, path)
		if err != nil {
			return end, exit(exitUsage, fmt.Errorf("--arg-file %s: %w", name, err))
		}
		open = append(open, b)
		if b.size <= scripts.InlineMax { // of a pipe, which cannot be read again
			small = append(small, name+"="+b.Name())
			continue
		}
		f.args = append(f.args, name+"="+scripts.BlobName(b.sum))
		if f.dry {
			continue
		}
		if _, err := s.putBlob(ctx, b); err != nil {
			return end, err
		}
	}
	f.files = small
	return end, nil
}
