package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

const (
	chunkBytes = 512 << 10 // of a stored content in one key
	chunksPipe = 4         // chunks in one round trip
	blobsMost  = 10_000    // stored contents

	// putTime bounds how long a content may take to arrive. What is not complete
	// then vanishes.
	putTime = 24 * time.Hour
)

// The errors of PutBlob and RemoveBlob, beside those of package jobs.
var (
	// ErrBlobsFull is wrapped when there is no room for another content.
	ErrBlobsFull = errors.New("no room for another blob")

	// ErrBlobUsed is wrapped when tasks need what is to be removed.
	ErrBlobUsed = errors.New("the blob is needed")

	// ErrBlobGoing is wrapped when a content is being removed at this moment.
	ErrBlobGoing = errors.New("the blob is being removed at this moment: put it again in a minute")
)

// blobEntry is what the list has of a content, or of one that is on its way.
type blobEntry struct {
	ID     string      `json:"id"` // of its chunks
	Size   int64       `json:"size"`
	Chunks int         `json:"chunks"`
	Name   string      `json:"name,omitempty"`
	By     string      `json:"by,omitempty"`
	At     jobs.Micros `json:"at,omitempty"`

	text string // the entry as it was read
	used jobs.Micros
	gone bool // it is being removed
}

// reserved begins the names of contents that are on their way.
const reserved = "~"

func (e blobEntry) chunk(n int) string {
	return hubKey("blob:", e.ID+":"+strconv.Itoa(n))
}

func (e blobEntry) info(sum string) jobs.Blob {
	return jobs.Blob{SHA256: sum, Size: e.Size, Name: e.Name, By: e.By, At: jobs.TimeOf(e.At),
		Used: jobs.TimeOf(e.used), Tasks: []jobs.TaskID{}}
}

func parseBlobEntry(text string) (blobEntry, error) {
	used, rest, _ := strings.Cut(text, " ")
	e := blobEntry{text: text, gone: used == "-"}
	err := json.Unmarshal([]byte(rest), &e)
	if err == nil && !e.gone {
		e.used, err = jobs.ParseMicros(used)
	}
	if err == nil && (e.ID == "" || e.Size < 0 || e.Chunks != chunksOf(e.Size)) {
		err = errors.New("it contradicts itself")
	}
	if err != nil {
		return e, fmt.Errorf("list of blobs: entry %.100q: %w", text, err)
	}
	return e, nil
}

func chunksOf(size int64) int { return int((size + chunkBytes - 1) / chunkBytes) }

// blobEntries reads the list.
func (q *Queue) blobEntries(ctx context.Context) (map[string]blobEntry, error) {
	all, err := q.rdb.HGetAll(ctx, hubKey("blobs", "")).Result()
	if err != nil {
		return nil, q.say("blobs", err)
	}
	list := make(map[string]blobEntry, len(all))
	for name, text := range all {
		if list[name], err = parseBlobEntry(text); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// PutBlob stores a content of b.Size bytes under b.SHA256, unless it is there. All
// contents together may have most bytes. It checks what it reads, and stores all of
// it or nothing.
func (q *Queue) PutBlob(ctx context.Context, b jobs.Blob, most int64, content io.Reader) (
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

// blobPut is a content on its way.
type blobPut struct {
	q *Queue
	blobEntry
	sum     string
	content io.Reader
}

// reserve notes that the content comes. Of two that are too much together both may
// be refused, never none.
func (p *blobPut) reserve(ctx context.Context, most int64) error {
	now, err := p.q.now(ctx, HubZone)
	if err != nil {
		return err
	}
	p.At = jobs.MicrosOf(now)
	text, err := json.Marshal(p.blobEntry)
	if err != nil {
		return err
	}
	name := reserved + p.ID
	err = p.q.rdb.HSet(ctx, hubKey("blobs", ""), name, p.At.String()+" "+string(text)).Err()
	if err != nil {
		return p.q.say("put blob", err)
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
			"allow more", ErrBlobsFull, most, total-p.Size, p.Size)
	case len(all) > blobsMost:
		err = fmt.Errorf("%w: there are %d: remove some", ErrBlobsFull, len(all)-1)
	}
	if err != nil {
		p.undo(ctx)
	}
	return err
}

// write stores the chunks, for a time, and compares the content with its name.
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
		_, err := p.q.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			i := n
			for chunk := range slices.Chunk(part, chunkBytes) {
				pipe.Set(ctx, p.chunk(i), chunk, putTime)
				i++
			}
			return nil
		})
		if err != nil {
			return p.q.say("put blob", err)
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

// add makes what was written stay, and puts it on the list.
func (p *blobPut) add(ctx context.Context) error {
	kept := make([]*redis.BoolCmd, p.Chunks)
	_, err := p.q.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
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
		return p.q.say("put blob", err)
	case answer == "going":
		return ErrBlobGoing
	}
	return nil
}

// undo removes what is there of it. What it cannot, vanishes by itself or is found
// by TendBlobs.
func (p *blobPut) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.q.cfg.Timeout)
	defer cancel()
	_ = p.q.removeBlob(ctx, reserved+p.ID, p.blobEntry)
}

// removeBlob removes the chunks of an entry, and then the entry.
func (q *Queue) removeBlob(ctx context.Context, name string, e blobEntry) error {
	_, err := q.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for n := range e.Chunks {
			pipe.Del(ctx, e.chunk(n))
		}
		return nil
	})
	if err == nil {
		err = q.rdb.HDel(ctx, hubKey("blobs", ""), name).Err()
	}
	return q.say("remove blob", err)
}

func (q *Queue) blobScript(ctx context.Context, args ...any) (string, error) {
	r, err := q.hubScript(ctx, scripts.blob, args...)
	if err != nil {
		return "", err
	}
	return r.text(), r.err
}

// blob reads one entry; jobs.ErrNoBlob if there is none.
func (q *Queue) blob(ctx context.Context, sum string) (blobEntry, error) {
	text, err := q.rdb.HGet(ctx, hubKey("blobs", ""), sum).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return blobEntry{}, q.say("blob", err)
	}
	if err == nil && !strings.HasPrefix(sum, reserved) {
		e, err := parseBlobEntry(text)
		if err != nil || !e.gone {
			return e, err
		}
	}
	return blobEntry{}, fmt.Errorf("blob %s: %w", sum, jobs.ErrNoBlob)
}

// Blob tells of a stored content; jobs.ErrNoBlob if it is not there.
func (q *Queue) Blob(ctx context.Context, sum string) (jobs.Blob, error) {
	e, err := q.blob(ctx, sum)
	return e.info(sum), err
}

// ReadBlob writes a stored content to w, chunk by chunk. Only without an error was it
// the right one: jobs.ErrNoBlob says that it is not there, or not all of it, and
// jobs.ErrBadBlob that it is another.
func (q *Queue) ReadBlob(ctx context.Context, sum string, w io.Writer) error {
	e, err := q.blob(ctx, sum)
	if err != nil {
		return err
	}
	got := sha256.New()
	to := io.MultiWriter(w, got)
	for n := range e.Chunks {
		chunk, err := q.rdb.Get(ctx, e.chunk(n)).Bytes()
		want := min(chunkBytes, e.Size-int64(n)*chunkBytes)
		switch {
		case errors.Is(err, redis.Nil):
			return fmt.Errorf("blob %s: part %d of %d: %w", sum, n+1, e.Chunks, jobs.ErrNoBlob)
		case err != nil:
			return q.say("blob", err)
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

// Blobs lists the stored contents, the one that was used last first.
func (q *Queue) Blobs(ctx context.Context) ([]jobs.Blob, error) {
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
