package queue_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

const blobsMax = 16 << 20

// content returns a random content and its name.
func content(size int) ([]byte, jobs.Blob) {
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(rand.Uint32())
	}
	return text, jobs.Blob{SHA256: fmt.Sprintf("%x", sha256.Sum256(text)), Size: int64(size),
		Name: "image.bin", By: "alice"}
}

func mustPut(t *testing.T, q *queuetest.Queue, size int) ([]byte, jobs.Blob) {
	t.Helper()
	text, b := content(size)
	got, err := q.PutBlob(t.Context(), b, blobsMax, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return text, got
}

// eachBare runs a test on servers whose keys it may read.
func eachBare(t *testing.T, test func(t *testing.T, w world, c *redis.Client)) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		m, cfg := redistest.StartMini(t)
		test(t, world{cfg: cfg}, raw(t, m.Addr()))
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		s := redistest.StartServer(t)
		test(t, world{cfg: s.Config()}, raw(t, s.Addr))
	})
}

// blobKeys counts the keys of contents.
func blobKeys(t *testing.T, c *redis.Client) int {
	t.Helper()
	keys, err := c.Keys(t.Context(), "muster:{hub}:blob:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return len(keys)
}

// Servers and nodes of every kind of Redis store and read blobs.
func TestBlobsEverywhere(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		text, b := mustPut(t, q, 600<<10)
		var got bytes.Buffer
		if err := q.ReadBlob(t.Context(), b.SHA256, &got); err != nil || !bytes.Equal(got.Bytes(), text) {
			t.Errorf("%d bytes, %v", got.Len(), err)
		}
		if err := q.PinBlobs(t.Context(), "0000000001", []string{b.SHA256}); err != nil {
			t.Error(err)
		}
		if n, err := q.TendBlobs(t.Context(), 0); err != nil || n != 0 {
			t.Errorf("%d removed, %v", n, err)
		}
		if err := q.RemoveBlob(t.Context(), b.SHA256, true); err != nil {
			t.Error(err)
		}
		if list, err := q.Blobs(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("left: %+v, %v", list, err)
		}
	})
}

func TestBlobs(t *testing.T) {
	t.Parallel()
	eachBare(t, func(t *testing.T, w world, c *redis.Client) {
		q := open(t, w, "")
		const chunk = 512 << 10
		for _, size := range []int{0, 1, chunk, chunk + 1, 5*chunk - 1} {
			text, b := mustPut(t, q, size)
			if b.Size != int64(size) || b.Name != "image.bin" || b.By != "alice" || b.At.IsZero() ||
				b.Used.IsZero() {
				t.Errorf("put: %+v", b)
			}
			var got bytes.Buffer
			if err := q.ReadBlob(t.Context(), b.SHA256, &got); err != nil || !bytes.Equal(got.Bytes(), text) {
				t.Errorf("%d bytes, %v, want the %d that were put", got.Len(), err, size)
			}
			// A stored content is not read again.
			again, err := q.PutBlob(t.Context(), b, blobsMax, nil)
			if err != nil || again.At != b.At {
				t.Errorf("put again: %+v, %v", again, err)
			}
		}
		list, err := q.Blobs(t.Context())
		if err != nil || len(list) != 5 {
			t.Fatalf("list: %+v, %v", list, err)
		}
		if n := blobKeys(t, c); n != 9 {
			t.Errorf("%d keys, want 9", n)
		}
		for _, b := range list {
			if err := q.RemoveBlob(t.Context(), b.SHA256, false); err != nil {
				t.Error(err)
			}
			if _, err := q.Blob(t.Context(), b.SHA256); !errors.Is(err, jobs.ErrNoBlob) {
				t.Errorf("of one that was removed: %v", err)
			}
			err := q.ReadBlob(t.Context(), b.SHA256, io.Discard)
			if !errors.Is(err, jobs.ErrNoBlob) {
				t.Errorf("read of one that was removed: %v", err)
			}
		}
		if n := blobKeys(t, c); n != 0 {
			t.Errorf("%d keys are left", n)
		}
	})
}

// broken returns some bytes and then an error.
type broken struct{ io.Reader }

func (b broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		err = errors.New("disk on fire")
	}
	return n, err
}

func TestBlobsThatAreNotPut(t *testing.T) {
	t.Parallel()
	eachBare(t, func(t *testing.T, w world, c *redis.Client) {
		q := open(t, w, "")
		text, b := content(3 << 20)
		other, larger, smaller := b, b, b
		other.SHA256 = strings.Repeat("ab", 32)
		larger.Size++
		smaller.Size--
		for _, test := range []struct {
			name    string
			blob    jobs.Blob
			most    int64
			content io.Reader
			want    error
			words   string
		}{
			{"another sum", other, blobsMax, bytes.NewReader(text), jobs.ErrBadBlob, "its sha256 is " + b.SHA256},
			{"too short", larger, blobsMax, bytes.NewReader(text), jobs.ErrBadBlob, "less than 3145729"},
			{"too long", smaller, blobsMax, bytes.NewReader(text), jobs.ErrBadBlob, "more than 3145727"},
			{"too large", b, 3<<20 - 1, bytes.NewReader(text), queue.ErrBlobsFull, "of 3145727 bytes (blobs.max) 0"},
			{"cut off", b, blobsMax, broken{bytes.NewReader(text[:2<<20])}, nil, "disk on fire"},
		} {
			_, err := q.PutBlob(t.Context(), test.blob, test.most, test.content)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%s: %v, want %q", test.name, err, test.words)
			}
			if list, err := q.Blobs(t.Context()); err != nil || len(list) != 0 || blobKeys(t, c) != 0 {
				t.Errorf("%s: there are %+v, %v and %d keys", test.name, list, err, blobKeys(t, c))
			}
		}
		if n := c.HLen(t.Context(), "muster:{hub}:blobs").Val(); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

func TestBlobsThatWereDamaged(t *testing.T) {
	t.Parallel()
	eachBare(t, func(t *testing.T, w world, c *redis.Client) {
		q := open(t, w, "")
		for _, damage := range []struct {
			name string
			do   func(key string) error
			want error
		}{
			{"truncated", func(key string) error { return c.Set(t.Context(), key, "short", 0).Err() },
				jobs.ErrBadBlob},
			{"other bytes", func(key string) error { return c.SetRange(t.Context(), key, 9, "evil").Err() },
				jobs.ErrBadBlob},
			{"a part is missing", func(key string) error { return c.Del(t.Context(), key).Err() },
				jobs.ErrNoBlob},
		} {
			_, b := mustPut(t, q, 1<<20)
			keys, err := c.Keys(t.Context(), "muster:{hub}:blob:*:1").Result()
			if err != nil || len(keys) != 1 {
				t.Fatalf("%v, %v", keys, err)
			}
			if err := damage.do(keys[0]); err != nil {
				t.Fatal(err)
			}
			if err := q.ReadBlob(t.Context(), b.SHA256, io.Discard); !errors.Is(err, damage.want) {
				t.Errorf("%s: %v, want %v", damage.name, err, damage.want)
			}
			if err := q.RemoveBlob(t.Context(), b.SHA256, false); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestBlobsAreKeptWhileTheyAreNeeded(t *testing.T) {
	t.Parallel()
	eachBare(t, func(t *testing.T, w world, c *redis.Client) {
		q := open(t, w, "1")
		_, needed := mustPut(t, q, 1000)
		_, spare := mustPut(t, q, 1000)
		task, hosts := newTask(spec(), 1)
		if err := q.PinBlobs(t.Context(), task.ID, []string{needed.SHA256}); err != nil {
			t.Fatal(err)
		}
		if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
			t.Fatal(err)
		}
		tend := func(grace time.Duration, want int) {
			t.Helper()
			if n, err := q.TendBlobs(t.Context(), grace); err != nil || n != want {
				t.Errorf("%d were removed, %v, want %d", n, err, want)
			}
		}
		tend(time.Hour, 0) // both are young
		tend(0, 1)
		if _, err := q.Blob(t.Context(), spare.SHA256); !errors.Is(err, jobs.ErrNoBlob) {
			t.Errorf("the one that nobody needs: %v", err)
		}
		if list, err := q.Blobs(t.Context()); err != nil || len(list) != 1 || len(list[0].Tasks) != 1 ||
			list[0].Tasks[0] != task.ID {
			t.Errorf("list: %+v, %v", list, err)
		}
		if err := q.RemoveBlob(t.Context(), needed.SHA256, false); !errors.Is(err, queue.ErrBlobUsed) ||
			!strings.Contains(err.Error(), string(task.ID)) {
			t.Errorf("it was removed under a task: %v", err)
		}
		step(t, q, "1", 0, ended(one(t, step(t, q, "1", 1)), jobs.Succeeded))
		tend(time.Hour, 0) // its grace time begins at the task's end
		tend(0, 1)
		if n := c.HLen(t.Context(), "muster:{hub}:pins").Val(); n != 0 {
			t.Errorf("%d pins are left", n)
		}
	})
}

func TestPinsAreForWhatIsThere(t *testing.T) {
	t.Parallel()
	eachBare(t, func(t *testing.T, w world, c *redis.Client) {
		q := open(t, w, "")
		_, there := mustPut(t, q, 10)
		gone := strings.Repeat("ab", 32)
		err := q.PinBlobs(t.Context(), "0000000001", []string{there.SHA256, gone})
		if !errors.Is(err, jobs.ErrNoBlob) || !strings.Contains(err.Error(), gone) {
			t.Errorf("got %v", err)
		}
		if n := c.HLen(t.Context(), "muster:{hub}:pins").Val(); n != 0 {
			t.Errorf("%d pins", n)
		}
		// A submit that never comes keeps the content for a day, unless an operator insists.
		if err := q.PinBlobs(t.Context(), "0000000001", []string{there.SHA256}); err != nil {
			t.Fatal(err)
		}
		if n, err := q.TendBlobs(t.Context(), 0); n != 0 || err != nil {
			t.Errorf("removed %d, %v", n, err)
		}
		if err := q.RemoveBlob(t.Context(), there.SHA256, false); !errors.Is(err, queue.ErrBlobUsed) {
			t.Errorf("removed: %v", err)
		}
		if err := q.RemoveBlob(t.Context(), there.SHA256, true); err != nil {
			t.Error(err)
		}
	})
}

// A later round of care ends a removal and a put that broke off.
func TestBlobsThatWereLeftHalfWay(t *testing.T) {
	t.Parallel()
	eachBare(t, func(t *testing.T, w world, c *redis.Client) {
		q := open(t, w, "")
		text, b := mustPut(t, q, 1000)
		entry := c.HGet(t.Context(), "muster:{hub}:blobs", b.SHA256).Val()
		_, rest, _ := strings.Cut(entry, " ")
		c.HSet(t.Context(), "muster:{hub}:blobs", b.SHA256, "- "+rest, "~x", "1 "+rest, "~y", entry)
		if _, err := q.PutBlob(t.Context(), b, blobsMax, bytes.NewReader(text)); !errors.Is(err, queue.ErrBlobGoing) {
			t.Errorf("put while it is being removed: %v", err)
		}
		if n, err := q.TendBlobs(t.Context(), time.Hour); n != 0 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if keys := c.HKeys(t.Context(), "muster:{hub}:blobs").Val(); len(keys) != 1 || keys[0] != "~y" {
			t.Errorf("left are %q, want what has just begun", keys)
		}
		if _, err := q.PutBlob(t.Context(), b, blobsMax, bytes.NewReader(text)); err != nil {
			t.Error(err)
		}
	})
}

// A content whose sender died expires.
func TestBlobsThatNeverArriveExpire(t *testing.T) {
	t.Parallel()
	eachBare(t, func(t *testing.T, w world, c *redis.Client) {
		q := open(t, w, "")
		text, b := content(2 << 20)
		ctx, cancel := context.WithCancel(t.Context())
		looked := false
		_, err := q.PutBlob(ctx, b, blobsMax, io.MultiReader(bytes.NewReader(text[:len(text)-1]),
			readerFunc(func(p []byte) (int, error) {
				looked = true
				cancel()
				return 0, ctx.Err()
			})))
		if err == nil || !looked {
			t.Errorf("got %v", err)
		}
		if n := blobKeys(t, c); n != 0 {
			t.Errorf("%d keys are left", n)
		}
		_, again := mustPut(t, q, 600<<10)
		if ttl := c.TTL(t.Context(), "muster:{hub}:blobs").Val(); ttl != -1 {
			t.Errorf("the list expires: %s", ttl)
		}
		keys := c.Keys(t.Context(), "muster:{hub}:blob:*").Val()
		for _, key := range keys {
			if ttl := c.TTL(t.Context(), key).Val(); ttl != -1 {
				t.Errorf("a part of %s expires: %s", again.SHA256, ttl)
			}
		}
	})
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A node can read contents and nothing else.
func TestANodeReadsBlobsOnly(t *testing.T) {
	t.Parallel()
	s := withUsers(t, nil)
	server := open(t, world{cfg: s.As(keys.RoleServer)}, "")
	node := open(t, world{cfg: s.As(keys.RoleNode)}, "1")
	text, b := mustPut(t, server, 1<<20)
	var got bytes.Buffer
	if err := node.ReadBlob(t.Context(), b.SHA256, &got); err != nil || !bytes.Equal(got.Bytes(), text) {
		t.Errorf("%d bytes, %v", got.Len(), err)
	}
	_, mine := content(10)
	for name, err := range map[string]error{
		"put": func() error {
			_, err := node.PutBlob(t.Context(), mine, blobsMax, bytes.NewReader(text))
			return err
		}(),
		"removed": node.RemoveBlob(t.Context(), b.SHA256, true),
	} {
		if err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Errorf("a node has %s a blob: %v", name, err)
		}
	}
	if err := server.RemoveBlob(t.Context(), b.SHA256, true); err != nil {
		t.Error(err)
	}
}
