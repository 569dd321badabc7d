package submit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster/cli"
	"muster/fleet/remote"
	"muster/internal/files"
	"muster/jobs"
	"muster/scripts"
)

// BlobPath returns the route of a blob.
func BlobPath(sum string) string { return "/v1/blobs/" + url.PathEscape(sum) }

// Slowest is the least speed of a connection to the server, in bytes a second.
const Slowest = 50_000

// PutBlob stores a file, unless it is stored already.
func PutBlob(ctx context.Context, s *cli.Session, f *blobFile) (jobs.Blob, error) {
	var b jobs.Blob
	q := url.Values{"size": {strconv.FormatInt(f.size, 10)}, "name": {f.name}}
	s.Say("storing %s (%s)", cli.Cell(f.name), remote.ByteCount(f.size))
	err := s.Do(ctx, cli.Call{Method: http.MethodPut, Path: BlobPath(f.sum), Query: q, Content: f.File,
		Size: f.size, Bound: cli.SubmitTimeout + time.Duration(f.size/Slowest)*time.Second}, &b)
	return b, err
}

// blobFile is a file to store.
type blobFile struct {
	*os.File
	sum, name string
	size      int64
	copied    bool // a copy of input that cannot be read twice
}

// streamMax is more than a server accepts, so that an endless stream does not fill the disk.
const streamMax = 4 << 30 // bytes

// OpenBlobFile opens a file and computes its checksum. A file that is not regular, like a pipe, is
// copied first.
func OpenBlobFile(ctx context.Context, path string) (*blobFile, error) {
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
		f.Close()
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

// Close closes the file, and removes a copy.
func (f *blobFile) Close() {
	if f.File == nil {
		return
	}
	files.CloseGiven(f.File)
	if f.copied {
		os.Remove(f.Name())
	}
}

// takeLarge stores those files of --arg-file that are too large for a task, and puts their names
// into its arguments. A dry run stores nothing. submit reports mistakes in the flags.
func takeLarge(ctx context.Context, s *cli.Session, f *RunFlags) (end func(), err error) {
	var open []*blobFile
	end = func() {
		for _, b := range open {
			b.Close()
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
		b, err := OpenBlobFile(ctx, path)
		if err != nil {
			return end, cli.Exit(cli.ExitUsage, fmt.Errorf("--arg-file %s: %w", name, err))
		}
		open = append(open, b)
		if b.size <= scripts.InlineMax { // a pipe, which cannot be read again
			small = append(small, name+"="+b.Name())
			continue
		}
		f.Args = append(f.Args, name+"="+scripts.BlobName(b.sum))
		if f.dry {
			continue
		}
		if _, err := PutBlob(ctx, s, b); err != nil {
			return end, err
		}
	}
	f.files = small
	return end, nil
}
