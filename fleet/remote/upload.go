package remote

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"
)

// Upload is a file to put on a host.
type Upload struct {
	Path   string      // absolute, not a directory
	Mode   fs.FileMode // permission bits; all files start as 0600
	Size   int64       // of the content, in bytes
	SHA256 [sha256.Size]byte

	// Content provides Size bytes; its Read must not block for long. If it is an io.Seeker,
	// as files are, bytes that an earlier call has sent are not sent
	// again.
	Content io.Reader

	// Record makes the host refuse the upload if it has seen a newer attempt (KindStale) or a
	// step runs (KindBusy), both at the beginning and before the file is put in place. With
	// Again, an earlier attempt may still be uploading, and a host that could not refuse that
	// one is not touched (KindUntold). An upload leaves no record itself, so Twice and Look
	// have no meaning. nil, or a host with fence none: no such check.
	Record *Record

	Bound time.Duration   // how long it may take, as in Command
	Stop  <-chan struct{} // stops it, as in Command; no part of the file remains

	// Progress, which may be nil, is called after each part, by one goroutine at a time. It
	// must not block. It is not called after Upload has returned.
	Progress func(Progress)
}

// Progress is the progress of an upload, in bytes of the file.
type Progress struct {
	Size int64
	Had  int64 // bytes that were on the host before; Size if it has the file already
	Sent int64 // bytes that this call has sent
}

// Upload puts a file on the host. It replaces an existing file in one step or leaves it
// unchanged; the directory must exist. A file that is already there is not sent again, nor
// are the bytes of an interrupted upload: these wait beside the file under a name of their
// own, and the host compares them with the content before it appends to them. The error is
// an [Error].
func (c *Conn) Upload(ctx context.Context, u Upload) error {
	if err := u.check(); err != nil {
		return c.to.fault("upload", KindInvalid, err)
	}
	var start int64
	place, ok := u.Content.(io.Seeker)
	if ok {
		var err error
		if start, err = place.Seek(0, io.SeekCurrent); err != nil {
			return c.to.fault("upload", KindNode, err)
		}
	}
	resumed, err := c.uploadOnce(ctx, u)
	if resumed && errors.Is(err, errOtherSum) {
		// The bytes on the host were right when they were compared, and are not any more. The
		// host has removed them.
		if _, err := place.Seek(start, io.SeekStart); err != nil {
			return c.to.faultSent("upload", KindNode, err)
		}
		_, err = c.uploadOnce(ctx, u)
	}
	return err
}

// errOtherSum means that all bytes arrived, but differ from the intended content.
var errOtherSum = errors.New("the checksum is another")

// uploadOnce tries once. resumed reports whether it continued an earlier upload.
func (c *Conn) uploadOnce(ctx context.Context, u Upload) (resumed bool, err error) {
	nonce := newNonce()
	p := partOf(u, nonce)
	d := newDialog(u, nonce)
	defer d.end()
	result, err := c.run(ctx, "upload", u.recorded(c, Command{
		Shell: fmt.Sprintf("phase=${1:-both}\nset -- %s %s %s %s %s %04o %d\n%s", quote(u.Path),
			quote(p.dir), quote(p.prefix), quote(p.sum), quote(nonce), u.Mode, u.Size, uploadScript),
		nonce:  nonce,
		Stdin:  d,
		Bound:  u.Bound,
		Stop:   u.Stop,
		litter: p.name,
		Live:   d,
	}))
	if err != nil {
		return false, err
	}
	said := d.seen()
	switch {
	case result.ExitCode == 0 && said.done:
		return said.from > 0, nil
	case len(said.refused) > 1:
		return false, said.refused.refusal("upload", c)
	case said.short:
		return false, c.to.faultSent("upload", KindInvalid,
			fmt.Errorf("%s: the content has only %d bytes of %d", u.Path, said.read, u.Size))
	case result.ExitCode == 0:
		return false, c.to.faultSent("upload", KindFailed, fmt.Errorf("%s: the host ran something "+
			"else; %s", u.Path, lastWords(without(result.Output, nonce))))
	}
	err = fmt.Errorf("%s: exit %d; %s", u.Path, result.ExitCode,
		lastWords(without(result.Output, nonce)))
	if result.ExitCode == exitOtherSum {
		err = fmt.Errorf("%w: %w", errOtherSum, err)
	}
	return said.from > 0, c.to.faultSent("upload", KindFailed, err)
}

// recorded adds the record of the attempt to a command, if the upload has one.
func (u Upload) recorded(c *Conn, cmd Command) Command {
	if u.Record == nil {
		return cmd
	}
	r := *u.Record
	r.Twice, r.Look = false, false
	if cmd.Record = &r; c.verb(cmd) != "" {
		cmd.verb = verbPut
	}
	return cmd
}

// part is the file that collects the bytes of an upload.
type part struct {
	dir    string // directory of the file
	prefix string // common prefix of all parts for the same path
	sum    string // of the content, in hex
	name   string // path of this upload's own part
}

// partOf names the part by the path of the file, by its content, and by the call, so that no
// process of an earlier call ever writes to it.
func partOf(u Upload, nonce string) part {
	dir, at := path.Dir(u.Path), sha256.Sum256([]byte(u.Path))
	p := part{dir: dir, sum: fmt.Sprintf("%x", u.SHA256),
		prefix: path.Join(dir, fmt.Sprintf(".muster-%x-", at[:4]))}
	p.name = p.prefix + p.sum + "-" + nonce + ".part"
	return p
}

func (u Upload) check() error {
	var errs []error
	if !path.IsAbs(u.Path) || strings.HasSuffix(u.Path, "/") || strings.IndexByte(u.Path, 0) >= 0 {
		errs = append(errs, fmt.Errorf("path = %q: an absolute path of a file", u.Path))
	}
	if u.Mode&^fs.ModePerm != 0 {
		errs = append(errs, fmt.Errorf("mode = %s: only permission bits, 0000 to 0777", u.Mode))
	}
	if u.Size < 0 {
		errs = append(errs, fmt.Errorf("size = %d: it cannot be negative", u.Size))
	}
	if u.Content == nil {
		errs = append(errs, errors.New("there is no content"))
	}
	return errors.Join(errs...)
}

// without removes the answers of the script, which begin with the nonce.
func without(o Output, nonce string) Output {
	var kept []byte
	for line := range bytes.Lines(o.Bytes()) {
		if !bytes.HasPrefix(line, []byte(nonce)) {
			kept = append(kept, line...)
		}
	}
	return Output{Head: kept}
}
