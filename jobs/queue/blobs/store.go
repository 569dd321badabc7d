package blobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Store reads and writes contents.
type Store struct{ c *queue.Conn }

// NewStore returns the store behind a connection.
func NewStore(c *queue.Conn) *Store { return &Store{c} }

// blobEntries reads the list.
func (q *Store) blobEntries(ctx context.Context) (map[string]blobEntry, error) {
	all, err := q.c.Redis().HGetAll(ctx, keys.Hub("blobs", "")).Result()
	if err != nil {
		return nil, q.c.Say("blobs", err)
	}
	list := make(map[string]blobEntry, len(all))
	for name, text := range all {
		if list[name], err = parseBlobEntry(text); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// PutBlob stores a content of b.Size bytes under b.SHA256, unless it is there. All contents
// together may have most bytes. It checks the bytes that it reads, and stores all of them or
// nothing.
func (q *Store) PutBlob(ctx context.Context, b jobs.Blob, most int64, content io.Reader) (
	jobs.Blob, error) {
	p := &blobPut{q: q, sum: b.SHA256, content: content,
		blobEntry: blobEntry{ID: rand.Text(), Size: b.Size, Chunks: chunksOf(b.Size), Name: b.Name,
			By: b.By}}
	there, err := q.blob(ctx, b.SHA256)
	switch {
	case err == nil:
		if err := q.PinBlobs(ctx, "", []string{b.SHA256}); err != nil {
			return jobs.Blob{}, err
		}
		return there.info(b.SHA256), nil
	case !errors.Is(err, jobs.ErrNoBlob):
		return jobs.Blob{}, err
	}
	if err := p.reserve(ctx, most); err != nil {
		return jobs.Blob{}, err
	}
	err = p.write(ctx)
	if err == nil {
		err = p.add(ctx)
	}
	if err != nil {
		return jobs.Blob{}, err
	}
	return q.Blob(ctx, b.SHA256)
}

// removeBlob removes the chunks of an entry, and then the entry.
func (q *Store) removeBlob(ctx context.Context, name string, e blobEntry) error {
	_, err := q.c.Redis().Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for n := range e.Chunks {
			pipe.Del(ctx, e.chunk(n))
		}
		return nil
	})
	if err == nil {
		err = q.c.Redis().HDel(ctx, keys.Hub("blobs", ""), name).Err()
	}
	return q.c.Say("remove blob", err)
}

func (q *Store) blobScript(ctx context.Context, args ...any) (string, error) {
	r, err := q.c.HubScript(ctx, queue.Scripts.Blob, args...)
	if err != nil {
		return "", err
	}
	return r.Text(), r.Err
}

// blob reads one entry; jobs.ErrNoBlob if there is none.
func (q *Store) blob(ctx context.Context, sum string) (blobEntry, error) {
	text, err := q.c.Redis().HGet(ctx, keys.Hub("blobs", ""), sum).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return blobEntry{}, q.c.Say("blob", err)
	}
	if err == nil && !strings.HasPrefix(sum, reserved) {
		e, err := parseBlobEntry(text)
		if err != nil || !e.gone {
			return e, err
		}
	}
	return blobEntry{}, fmt.Errorf("blob %s: %w", sum, jobs.ErrNoBlob)
}

// Blob describes a stored content; jobs.ErrNoBlob if it is missing.
func (q *Store) Blob(ctx context.Context, sum string) (jobs.Blob, error) {
	e, err := q.blob(ctx, sum)
	return e.info(sum), err
}

// ReadBlob writes a stored content to w, chunk by chunk. The bytes are right only if there is no
// error: jobs.ErrNoBlob says that the content, or a part of it, is missing, and jobs.ErrBadBlob
// that the bytes differ.
func (q *Store) ReadBlob(ctx context.Context, sum string, w io.Writer) error {
	e, err := q.blob(ctx, sum)
	if err != nil {
		return err
	}
	got := sha256.New()
	to := io.MultiWriter(w, got)
	for n := range e.Chunks {
		chunk, err := q.c.Redis().Get(ctx, e.chunk(n)).Bytes()
		want := min(chunkBytes, e.Size-int64(n)*chunkBytes)
		switch {
		case errors.Is(err, redis.Nil):
			return fmt.Errorf("blob %s: part %d of %d: %w", sum, n+1, e.Chunks, jobs.ErrNoBlob)
		case err != nil:
			return q.c.Say("blob", err)
		case int64(len(chunk)) != want:
			return fmt.Errorf("blob %s: %w: part %d of %d has %d bytes, want %d", sum, jobs.ErrBadBlob,
				n+1, e.Chunks, len(chunk), want)
		}
		if _, err := to.Write(chunk); err != nil {
			return err
		}
	}
	if is := hex.EncodeToString(got.Sum(nil)); is != sum {
		return fmt.Errorf("blob %s: %w: it is %s", sum, jobs.ErrBadBlob, is)
	}
	return nil
}

// Blobs returns the stored contents, the most recently used first.
func (q *Store) Blobs(ctx context.Context) ([]jobs.Blob, error) {
	all, err := q.blobEntries(ctx)
	if err != nil {
		return nil, err
	}
	pins, err := q.blobPins(ctx)
	if err != nil {
		return nil, err
	}
	list := []jobs.Blob{}
	for sum, e := range all {
		if e.gone || strings.HasPrefix(sum, reserved) {
			continue
		}
		b := e.info(sum)
		for _, p := range pins {
			if p.sum == sum {
				b.Tasks = append(b.Tasks, p.task)
			}
		}
		slices.Sort(b.Tasks)
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b jobs.Blob) int {
		return cmp.Or(b.Used.Compare(a.Used.Time), cmp.Compare(a.SHA256, b.SHA256))
	})
	return list, nil
}

// PinBlobs keeps stored contents for a task, before it is submitted. If one of them is missing the
// error wraps jobs.ErrNoBlob, and none is kept.
func (q *Store) PinBlobs(ctx context.Context, id jobs.TaskID, sums []string) error {
	if len(sums) == 0 {
		return nil
	}
	answer, err := q.blobScript(ctx, append([]any{"pin", string(id)}, codec.Anys(sums)...)...)
	if err == nil && answer != "ok" {
		err = fmt.Errorf("blob %s: %w", answer, jobs.ErrNoBlob)
	}
	return err
}

// pin says that a task needs a content.
type pin struct {
	field string
	sum   string
	task  jobs.TaskID
	at    jobs.Micros
}

func (q *Store) blobPins(ctx context.Context) ([]pin, error) {
	all, err := q.c.Redis().HGetAll(ctx, keys.Hub("pins", "")).Result()
	if err != nil {
		return nil, q.c.Say("blobs", err)
	}
	pins := make([]pin, 0, len(all))
	for field, at := range all {
		sum, task, _ := strings.Cut(field, " ")
		t, _ := jobs.ParseMicros(at)
		pins = append(pins, pin{field, sum, jobs.TaskID(task), t})
	}
	return pins, nil
}
