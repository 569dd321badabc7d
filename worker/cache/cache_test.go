package cache

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/jobs"
)

// store is a source of contents in memory.
type store struct {
	mu    sync.Mutex
	texts map[string][]byte
	reads int
	err   error
}

func (s *store) ReadBlob(_ context.Context, sum string, w io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	text, ok := s.texts[sum]
	if !ok {
		return jobs.ErrNoBlob
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	return s.err
}

func (s *store) put(text string) (sum string) {
	sum = fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	if s.texts == nil {
		s.texts = map[string][]byte{}
	}
	s.texts[sum] = []byte(text)
	return sum
}

func newTestCache(t *testing.T, s *store, most int64) *Cache {
	t.Helper()
	return New(Config{Dir: filepath.Join(t.TempDir(), "blobs"), Max: most}, s)
}

func wantCached(t *testing.T, c *Cache, sum, text string) {
	t.Helper()
	f, err := c.Open(t.Context(), sum, int64(len(text)))
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	got, err := io.ReadAll(f)
	if err != nil || string(got) != text {
		t.Errorf("got %q, %v, want %q", got, err, text)
	}
}

func TestCacheGetsAContentOnce(t *testing.T) {
	t.Parallel()
	s := &store{}
	sum := s.put("hello")
	c := newTestCache(t, s, 100)
	var all sync.WaitGroup
	for range 10 { // as if in many processes
		all.Go(func() { wantCached(t, New(c.cfg, s), sum, "hello") })
		all.Go(func() { wantCached(t, c, sum, "hello") })
	}
	all.Wait()
	if s.reads != 1 {
		t.Errorf("it was read %d times", s.reads)
	}
	// A cache that has checked a file before notices its damage, too.
	later := time.Now().Add(time.Hour)
	if err := errors.Join(os.WriteFile(c.path(sum), []byte("evil!"), 0o600),
		os.Chtimes(c.path(sum), later, later)); err != nil {
		t.Fatal(err)
	}
	wantCached(t, c, sum, "hello")
	if s.reads != 2 {
		t.Errorf("it was read %d times, want 2", s.reads)
	}
}

func TestCacheKeepsNothingWrong(t *testing.T) {
	t.Parallel()
	s := &store{}
	sum := s.put("hello")
	c := newTestCache(t, s, 100)
	trouble := errors.New("no answer")
	for _, test := range []struct {
		name string
		size int64
		err  error
		want error
	}{
		{"not there", 0, nil, jobs.ErrNoBlob},
		{"the source fails at its end", 5, trouble, trouble},
		{"longer than said", 4, nil, jobs.ErrBadBlob},
	} {
		s.err = test.err
		name := sum
		if test.size == 0 {
			name = strings.Repeat("ab", 32)
		}
		if _, err := c.Open(t.Context(), name, test.size); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.name, err, test.want)
		}
	}
	entries, err := os.ReadDir(c.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "lock-") {
			t.Errorf("%s is left", e.Name())
		}
	}
	s.err = nil
	wantCached(t, c, sum, "hello")
}

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	s := &store{}
	c := newTestCache(t, s, 25)
	var sums []string
	for i := range 4 {
		text := fmt.Sprintf("content %d.", i) // 10 bytes
		sums = append(sums, s.put(text))
		if i == 3 {
			wantCached(t, c, sums[0], "content 0.") // this one stays in use
		}
		wantCached(t, c, sums[i], text)
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if i == 0 {
			at = time.Now()
		}
		if err := os.Chtimes(c.path(sums[i])+usedMark, at, at); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	for i, sum := range sums {
		if _, err := os.Stat(c.path(sum)); err == nil {
			left = append(left, fmt.Sprint(i))
		}
	}
	if got := strings.Join(left, " "); got != "0 3" {
		t.Errorf("kept are %s, want 0 3", got)
	}
	// A content that is too large for the cache stays while it is in use.
	large := strings.Repeat("x", 30)
	wantCached(t, c, s.put(large), large)
}

func TestCacheOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	s := &store{}
	c := newTestCache(t, s, 25)
	if err := os.MkdirAll(c.cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.cfg.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Open(t.Context(), s.put("x"), 1); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("got %v", err)
	}
}
