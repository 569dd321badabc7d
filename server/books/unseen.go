package books

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"muster/jobs"
	"muster/jobs/queue"
)

// putUnseen stores a content for a caller with a limited view. The answer hides an earlier upload
// of the same content: the server reads and checks all bytes in both cases, and repeats the name
// and the owner of this upload. A full store does not tell its size.
func (s BlobRoutes) putUnseen(ctx context.Context, blob jobs.Blob, body io.Reader) (jobs.Blob,
	error) {
	sum, size := sha256.New(), counter(0)
	content := io.TeeReader(body, io.MultiWriter(sum, &size))
	if _, err := s.Store.PutBlob(ctx, blob, s.Max, content); err != nil {
		if errors.Is(err, queue.ErrBlobsFull) {
			return jobs.Blob{}, fmt.Errorf("%w: an admin can remove some, or allow more",
				queue.ErrBlobsFull)
		}
		return jobs.Blob{}, err
	}
	// The store has read all of a new content, and nothing of one that was there.
	_, err := io.Copy(io.Discard, io.LimitReader(content, blob.Size+1))
	switch got := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return jobs.Blob{}, fmt.Errorf("blob %s: %w", blob.SHA256, err)
	case int64(size) > blob.Size:
		return jobs.Blob{}, fmt.Errorf("%w: it has more than %d bytes", jobs.ErrBadBlob, blob.Size)
	case int64(size) < blob.Size:
		return jobs.Blob{}, fmt.Errorf("%w: it has less than %d bytes", jobs.ErrBadBlob, blob.Size)
	case got != blob.SHA256:
		return jobs.Blob{}, fmt.Errorf("%w: its sha256 is %s, not %s", jobs.ErrBadBlob, got,
			blob.SHA256)
	}
	now := jobs.Time{Time: time.Now()}
	blob.At, blob.Used, blob.Tasks = now, now, []jobs.TaskID{}
	return blob, nil
}

// counter counts what is written to it.
type counter int64

// Write counts the bytes.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
