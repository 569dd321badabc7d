package worker

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/scripts"
)

// Whoever listens hears how far a large file is, in as many lines as are kept.
func TestProgressOfAnUpload(t *testing.T) {
	t.Parallel()
	var live bytes.Buffer
	w := watch{to: "/x", live: &live}
	const size = 10 << 20
	for sent := int64(0); sent <= size; sent += 32 << 10 {
		w.note(remote.Progress{Size: size, Sent: sent})
	}
	said := string(w.end())
	if n := strings.Count(said, "\n"); n != 10 || said != live.String() ||
		!strings.HasPrefix(said, "/x: sent 1.0 MB of 10 MB\n") ||
		!strings.HasSuffix(said, "/x: sent 10 MB of 10 MB\n") {
		t.Errorf("%d lines, live %d bytes: %s", n, live.Len(), said)
	}
	// One that is there already, and one that never began.
	there, none := watch{to: "/x"}, watch{to: "/x"}
	there.note(remote.Progress{Size: size, Had: size})
	if said := string(there.end()); said != "/x: 10 MB were there already\n" {
		t.Errorf("it says %q", said)
	}
	if said := none.end(); said != nil {
		t.Errorf("it says %q", said)
	}
}

// store is a pretended source of contents.
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
	return NewCache(CacheConfig{Dir: filepath.Join(t.TempDir(), "blobs"), Max: most}, s)
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
	for range 10 { // as many processes do
		all.Go(func() { wantCached(t, NewCache(c.cfg, s), sum, "hello") })
		all.Go(func() { wantCached(t, c, sum, "hello") })
	}
	all.Wait()
	if s.reads != 1 {
		t.Errorf("it was read %d times", s.reads)
	}
	// Damage is noticed, also by who has looked at it before.
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
			wantCached(t, c, sums[0], "content 0.") // used since
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
	// One that is too large for the cache is there as long as it is in hand.
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

func sumOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// uploadBlob makes the task one that sends a stored content.
func (s *stand) uploadBlob(t *testing.T, text string) {
	t.Helper()
	made := spec(t, scripts.Step{Name: "put", Kind: scripts.KindUpload, Timeout: stepTime,
		Upload: &scripts.UploadSpec{Blob: sumOf(text), To: "/tmp/image", Mode: 0o640}})
	var f scripts.Frozen
	if err := json.Unmarshal(made.Action, &f); err != nil {
		t.Fatal(err)
	}
	f.Values.Blobs = map[string]int64{sumOf(text): int64(len(text))}
	var err error
	if made.Action, err = json.Marshal(f); err != nil {
		t.Fatal(err)
	}
	s.q.specs[task1] = made
}

// A step that sends a stored content, and all that can be wrong with that.
func TestUploadsOfBlobs(t *testing.T) {
	const text = "firmware"
	for _, tt := range []struct {
		name string
		err  error
		want jobs.Result
	}{
		{name: "there", want: end(jobs.Succeeded, "", class(jobs.ClassNone))},
		{name: "gone", err: fmt.Errorf("part 2 of 3: %w", jobs.ErrNoBlob), want: end(jobs.Failed,
			"sha256:"+sumOf(text)+" is not stored any more, or not all of it: put it there again with "+
				"`muster blob put FILE`, then `muster retry`", class(jobs.ClassUser))},
		{name: "damaged", err: jobs.ErrBadBlob, want: end(jobs.Failed,
			"sha256:"+sumOf(text)+" is damaged: `muster blob rm --force`, put it there again with "+
				"`muster blob put FILE`, then `muster retry`", class(jobs.ClassUser))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.uploadBlob(t, text)
				s.hosts.upload = func(_ context.Context, _ fleet.Host, u remote.Upload) error {
					got, err := io.ReadAll(u.Content)
					if err != nil || string(got) != text || u.Size != int64(len(text)) {
						t.Errorf("sent %q, %d, %v", got, u.Size, err)
					}
					u.Progress(remote.Progress{Size: u.Size, Had: 3, Sent: u.Size - 3})
					return nil
				}
				if tt.err == nil {
					tt.want.Output = []byte("/tmp/image: sent 5 bytes of 8 bytes, 3 bytes were there already\n")
				}
				s.blobs = func(_ context.Context, sum string, size int64) (Content, error) {
					if sum != sumOf(text) || size != int64(len(text)) {
						t.Errorf("asked for %s with %d bytes", sum, size)
					}
					return nopCloser{bytes.NewReader([]byte(text))}, tt.err
				}
				got := s.one()
				tt.want.Job, tt.want.Token = "0000000001:fw1", 1
				if diff := cmp.Diff(tt.want, got, timeless); diff != "" {
					t.Errorf("result (-want +got):\n%s", diff)
				}
			})
		})
	}
	t.Run("the node cannot get it at the moment", func(t *testing.T) {
		bubble(t, func(t *testing.T, s *stand) {
			s.uploadBlob(t, text)
			s.blobs = func(context.Context, string, int64) (Content, error) {
				return nil, errors.New("no space left on device")
			}
			if got := s.one(); got.Kind != jobs.KindRetry || !strings.Contains(got.Error, "no space left") {
				t.Errorf("got %+v, want another try", got)
			}
		})
	})
}
