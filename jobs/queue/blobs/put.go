package blobs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
)

// blobPut is a content that is being stored.
type blobPut struct {
	q *Store
	blobEntry
	sum     string
	content io.Reader
}

// reserve announces the content in the list. If two together are too large, both may be refused,
// but never neither.
func (p *blobPut) reserve(ctx context.Context, most int64) error {
	now, err := p.q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	p.At = jobs.MicrosOf(now)
	text, err := json.Marshal(p.blobEntry)
	if err != nil {
		return err
	}
	name := reserved + p.ID
	err = p.q.c.Redis().HSet(ctx, keys.Hub("blobs", ""), name, p.At.String()+" "+string(text)).Err()
	if err != nil {
		return p.q.c.Say("put blob", err)
	}
	all, err := p.q.blobEntries(ctx)
	total := int64(0)
	for _, e := range all {
		total += e.Size
	}
	switch {
	case err != nil:
	case total > most:
		err = fmt.Errorf("%w: of %d bytes (blobs.max) %d are taken, and it has %d: remove some, or "+
			"allow more", queue.ErrBlobsFull, most, total-p.Size, p.Size)
	case len(all) > blobsMost:
		err = fmt.Errorf("%w: there are %d: remove some", queue.ErrBlobsFull, len(all)-1)
	}
	if err != nil {
		p.undo(ctx)
	}
	return err
}

// write stores the chunks with an expiry, and compares the content with its name.
func (p *blobPut) write(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			p.undo(ctx)
		}
	}()
	sum, buffer := sha256.New(), make([]byte, chunksPipe*chunkBytes)
	rest := io.TeeReader(p.content, sum)
	for n := 0; n < p.Chunks; n += chunksPipe {
		part := buffer[:min(int64(len(buffer)), p.Size-int64(n)*chunkBytes)]
		if _, err := io.ReadFull(rest, part); err != nil {
			if err == io.EOF || err == io.ErrUnexpectedEOF {
				return fmt.Errorf("%w: it has less than %d bytes", jobs.ErrBadBlob, p.Size)
			}
			return fmt.Errorf("blob %s: %w", p.sum, err)
		}
		_, err := p.q.c.Redis().Pipelined(ctx, func(pipe redis.Pipeliner) error {
			i := n
			for chunk := range slices.Chunk(part, chunkBytes) {
				pipe.Set(ctx, p.chunk(i), chunk, putTime)
				i++
			}
			return nil
		})
		if err != nil {
			return p.q.c.Say("put blob", err)
		}
	}
	if n, _ := io.ReadFull(p.content, make([]byte, 1)); n > 0 {
		return fmt.Errorf("%w: it has more than %d bytes", jobs.ErrBadBlob, p.Size)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != p.sum {
		return fmt.Errorf("%w: its sha256 is %s, not %s", jobs.ErrBadBlob, got, p.sum)
	}
	return nil
}

// add makes the chunks permanent, and puts the content on the list.
func (p *blobPut) add(ctx context.Context) error {
	kept := make([]*redis.BoolCmd, p.Chunks)
	_, err := p.q.c.Redis().Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for n := range p.Chunks {
			kept[n] = pipe.Persist(ctx, p.chunk(n))
		}
		return nil
	})
	for _, k := range kept {
		if err == nil && !k.Val() {
			err = fmt.Errorf("it took longer than %s", putTime)
		}
	}
	text, bad := json.Marshal(p.blobEntry)
	answer := ""
	if err = errors.Join(err, bad); err == nil {
		answer, err = p.q.blobScript(ctx, "add", p.sum, string(text), reserved+p.ID)
	}
	if err != nil || answer != "ok" {
		p.undo(ctx)
	}
	switch {
	case err != nil:
		return p.q.c.Say("put blob", err)
	case answer == "going":
		return queue.ErrBlobGoing
	}
	return nil
}

// undo removes the stored parts. A part that it cannot remove expires, or TendBlobs finds it.
func (p *blobPut) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.q.c.Config().Timeout)
	defer cancel()
	_ = p.q.removeBlob(ctx, reserved+p.ID, p.blobEntry)
}
