package kinds

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
	"muster/worker/verdict"
)

// uploadStep does a step of kind upload.
type uploadStep struct{ runStep }

func newUploadStep(h Hand) Kind {
	k := uploadStep{runStep{onHost: onHost{h}}}
	k.send = k.upload
	return k
}

// upload puts the file on the host, within the bound of c. Its result has lines about the progress
// in place of output of the host.
func (k uploadStep) upload(ctx context.Context, action scripts.Action, c remote.Command) (
	remote.Result, error) {
	file := action.Upload
	sum, err := hex.DecodeString(file.SHA256)
	if err != nil || len(sum) != sha256.Size {
		return remote.Result{}, unsent(remote.KindInvalid,
			fmt.Errorf("%s: its sha256 is %q: a mistake in muster", file.To, file.SHA256))
	}
	content, err := k.open(file)
	if err != nil {
		return remote.Result{}, err
	}
	defer content.Close()
	if file.Blob { // the node may have taken a while to get the content
		left, ok := verdict.Bound(c.Bound, k.Job.Left())
		if !ok {
			return remote.Result{}, unsent(remote.KindNode,
				fmt.Errorf("%s: too little time is left to send it", file.To))
		}
		c.Bound = left
	}
	heard := watch{to: file.To, live: c.Live}
	err = k.Host.Upload(ctx, remote.Upload{
		Path:     file.To,
		Mode:     file.Mode,
		Size:     file.Size,
		SHA256:   [sha256.Size]byte(sum),
		Content:  content,
		Record:   c.Record,
		Bound:    c.Bound,
		Stop:     c.Stop,
		Progress: heard.note,
	})
	return remote.Result{Output: remote.Output{Head: heard.end()}}, err
}

// open opens the content of the file. Its errors say that nothing was sent.
func (k uploadStep) open(file *scripts.Upload) (io.ReadSeekCloser, error) {
	if !file.Blob {
		return nopCloser{bytes.NewReader(file.Content)}, nil
	}
	if k.Blobs == nil {
		return nil, unsent(remote.KindInvalid, errors.New("this worker cannot read blobs: "+
			"a mistake in muster"))
	}
	name := scripts.BlobName(file.SHA256)
	content, err := k.Blobs(k.Stop, file.SHA256, file.Size)
	switch {
	case err == nil:
		return content, nil
	case k.Stop.Err() != nil:
		return nil, unsent(remote.KindCancelled, err)
	case errors.Is(err, jobs.ErrNoBlob):
		return nil, unsent(remote.KindInvalid, fmt.Errorf("%s is not stored any more, or not all of it: "+
			"put it there again with `muster blob put FILE`, then `muster retry`", name))
	case errors.Is(err, jobs.ErrBadBlob):
		return nil, unsent(remote.KindInvalid, fmt.Errorf("%s is damaged: `muster blob rm --force`, put "+
			"it there again with `muster blob put FILE`, then `muster retry`", name))
	}
	return nil, unsent(remote.KindNode, fmt.Errorf("%s cannot be read: %w", name, err))
}

func unsent(k remote.Kind, err error) error {
	return &remote.Error{Op: "upload", Kind: k, Err: err}
}

type nopCloser struct{ io.ReadSeeker }

// Close does nothing.
func (nopCloser) Close() error { return nil }

// A watch reports the progress of an upload: a line for each tenth of a large file, and one at the
// end.
type watch struct {
	to   string
	live io.Writer // gets each line at once; may be nil

	mu   sync.Mutex // guards the fields below
	last remote.Progress
	any  bool
	said []byte
}

// watchMin is the least size of a file whose progress is reported, in bytes.
const watchMin = 1 << 20

func (w *watch) note(p remote.Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.any && p.Size >= watchMin && tenths(p) > tenths(w.last) && p.Had+p.Sent < p.Size {
		w.say(p)
	}
	w.last, w.any = p, true
}

func tenths(p remote.Progress) int64 { return (p.Had + p.Sent) * 10 / p.Size }

// say adds a line. The caller holds mu.
func (w *watch) say(p remote.Progress) {
	line := []byte(progressText(w.to, p) + "\n")
	w.said = append(w.said, line...)
	if w.live != nil {
		_, _ = w.live.Write(line)
	}
}

// end returns all lines; none if the upload did not begin.
func (w *watch) end() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.any {
		w.say(w.last)
	}
	return w.said
}

// progressText returns one line about an upload.
func progressText(to string, p remote.Progress) string {
	to = remote.Printable([]byte(to))
	switch size := remote.ByteCount(p.Size); {
	case p.Had == p.Size && p.Size > 0 && p.Sent == 0:
		return fmt.Sprintf("%s: %s were there already", to, size)
	case p.Had > 0:
		return fmt.Sprintf("%s: sent %s of %s, %s were there already", to, remote.ByteCount(p.Sent), size,
			remote.ByteCount(p.Had))
	default:
		return fmt.Sprintf("%s: sent %s of %s", to, remote.ByteCount(p.Sent), size)
	}
}
