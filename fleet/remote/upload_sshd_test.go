package remote_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// progress remembers what an upload reported last.
type progress struct {
	mu   sync.Mutex
	last remote.Progress
	n    int
}

func (p *progress) hear(now remote.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = now
	p.n++
}

func (p *progress) get() remote.Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// noise is content that no two tests share.
func noise(n int) []byte {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	text := make([]byte, n)
	rand.NewChaCha8(seed).Read(text)
	return text
}

// half is content that calls cut when so much of it was read. It can be read again
// from the beginning, but for the reader that was cut.
type half struct {
	*bytes.Reader
	after int64
	cut   func()
}

func (h *half) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p[:min(len(p), 32<<10)])
	if h.Size()-int64(h.Len()) >= h.after {
		h.cut()
	}
	return n, err
}

// cutUpload begins an upload of text and loses its connection when half of it is
// under way. It returns when the host has noticed.
func cutUpload(t *testing.T, sshd sshtest.SSHD, path string, text []byte) (part string) {
	t.Helper()
	conn := connect(t, sshd.Host)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	u := upload(path, 0o640, text)
	// A reset connection may lose bytes on their way, so wait until some have
	// arrived.
	u.Content = &half{bytes.NewReader(text), int64(len(text) / 2), sync.OnceFunc(func() {
		part = awaitPart(t, filepath.Dir(path))
		cancel()
	})}
	if err := conn.Upload(ctx, u); remote.KindOf(err) != remote.KindCancelled || !wasSent(err) {
		t.Fatalf("got %v, want that it was cancelled", err)
	}
	return part
}

// awaitPart waits until a MiB of a file is there; empty if it does not come.
func awaitPart(t *testing.T, dir string) string {
	t.Helper()
	late := time.After(20 * time.Second)
	for tick := time.Tick(10 * time.Millisecond); ; {
		found, err := filepath.Glob(filepath.Join(dir, ".muster-*.part"))
		if err != nil {
			t.Error(err)
		}
		for _, part := range found {
			if info, err := os.Stat(part); err == nil && info.Size() >= 1<<20 {
				return part
			}
		}
		select {
		case <-tick:
		case <-late:
			t.Errorf("no part of a MiB is there, only %q", found)
			return ""
		}
	}
}

func wantContent(t *testing.T, path string, mode os.FileMode, text []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, text) {
		t.Errorf("%d bytes, %v, want the %d that were sent", len(got), err, len(text))
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != mode {
		t.Errorf("mode %v, %v, want %v", info, err, mode)
	}
	wantFiles(t, filepath.Dir(path), filepath.Base(path))
}

func TestRealUploadGoesOnWhereItWasCut(t *testing.T) {
	t.Parallel()
	for system, options := range toolsets(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			sshd := sshtest.StartSSHD(t, options)
			text := noise(8 << 20)
			path := filepath.Join(t.TempDir(), "a file")
			cutUpload(t, sshd, path, text)

			var heard progress
			u := upload(path, 0o640, text)
			u.Progress = heard.hear
			if err := connect(t, sshd.Host).Upload(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			wantContent(t, path, 0o640, text)
			p := heard.get()
			if p.Size != int64(len(text)) || p.Had+p.Sent != p.Size || p.Had < 1<<20 {
				t.Errorf("the second time it was %+v: want that a MiB and more was not sent again", p)
			}

			// The third time nothing is left to be sent, but the mode is another.
			u = upload(path, 0o600, text)
			u.Progress = heard.hear
			u.Content = broken{}
			if err := connect(t, sshd.Host).Upload(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			wantContent(t, path, 0o600, text)
			if p := heard.get(); p.Had != p.Size || p.Sent != 0 {
				t.Errorf("of a file that is there: %+v", p)
			}
		})
	}
}

// The remains of an earlier upload are never trusted without a check.
func TestRealUploadThatCannotGoOn(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	for _, test := range []struct {
		name   string
		change func(t *testing.T, part string, text []byte) []byte
	}{
		{"another content", func(_ *testing.T, _ string, text []byte) []byte { return noise(len(text)) }},
		{"a part that was written to", func(t *testing.T, part string, text []byte) []byte {
			f, err := os.OpenFile(part, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte("evil"), 1000); err != nil {
				t.Fatal(err)
			}
			return text
		}},
		{"a part that is too long", func(t *testing.T, part string, text []byte) []byte {
			if err := os.WriteFile(part, append(text, 'x'), 0o600); err != nil {
				t.Fatal(err)
			}
			return text
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "file")
			text := noise(6 << 20)
			text = test.change(t, cutUpload(t, sshd, path, text), text)
			var heard progress
			u := upload(path, 0o644, text)
			u.Progress = heard.hear
			if err := connect(t, sshd.Host).Upload(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			wantContent(t, path, 0o644, text)
			if p := heard.get(); p.Had != 0 || p.Sent != p.Size {
				t.Errorf("it was %+v: want that all was sent", p)
			}
		})
	}
}

// Content that cannot be read from the beginning again is sent whole.
func TestRealUploadOfAStream(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	text := noise(4 << 20)
	path := filepath.Join(t.TempDir(), "file")
	cutUpload(t, sshd, path, text)
	u := upload(path, 0o644, text)
	u.Content = io.MultiReader(bytes.NewReader(text))
	if err := connect(t, sshd.Host).Upload(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	wantContent(t, path, 0o644, text)
}

// The process of a connection that was lost may still get bytes: they must not
// reach the file of the next upload.
func TestRealUploadIsSafeFromAnOlderOne(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	text := noise(4 << 20)
	path := filepath.Join(t.TempDir(), "file")
	older, newer := connect(t, sshd.Host), connect(t, sshd.Host)
	hold, held := make(chan struct{}), make(chan struct{})
	once := sync.OnceFunc(func() { close(held); <-hold })
	u := upload(path, 0o644, text)
	u.Content = &half{bytes.NewReader(text), int64(len(text)) - 1<<20, once}
	ended := make(chan error, 1)
	go func() { ended <- older.Upload(t.Context(), u) }()
	<-held
	awaitPart(t, filepath.Dir(path))
	if err := newer.Upload(t.Context(), upload(path, 0o644, text)); err != nil {
		t.Error(err)
	}
	close(hold)
	if err := <-ended; remote.KindOf(err) != remote.KindFailed {
		t.Errorf("the older one ended with %v, want that it failed", err)
	}
	wantContent(t, path, 0o644, text)
}

func TestRealUploadsTheHostCannotTake(t *testing.T) {
	t.Parallel()
	bare := t.TempDir() // what a host without a checksum has
	for _, tool := range []string{"sh", "cat", "chmod", "mv", "rm", "wc", "timeout", "sync", "ps", "kill"} {
		for _, dir := range []string{"/usr/bin/", "/bin/"} {
			if _, err := os.Stat(dir + tool); err == nil {
				if err := os.Symlink(dir+tool, filepath.Join(bare, tool)); err != nil {
					t.Fatal(err)
				}
				break
			}
		}
	}
	text := []byte("hello\n")
	small := t.TempDir() // df says that there is no room
	fake := "#!/bin/sh\necho Filesystem 1024-blocks Used Available Capacity Mounted\necho /dev/x 9 9 7 99% /\n"
	if err := os.WriteFile(filepath.Join(small, "df"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, path, dir string // PATH, and the directory of the file
		text            []byte
		words           string
	}{
		{"no checksum", bare, t.TempDir(), text, "neither sha256sum nor openssl"},
		{"read only", "/usr/bin:/bin", "/proc", text, "/proc cannot be written"},
		{"no space", small + ":/usr/bin:/bin", t.TempDir(), noise(10 << 10), "10 KiB are needed, 7 are free"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{
				"SetEnv PATH=" + test.path + " HOME=/"}})
			u := upload(filepath.Join(test.dir, "file"), 0o644, test.text)
			u.Content = broken{} // nothing is sent
			err := connect(t, sshd.Host).Upload(t.Context(), u)
			if remote.KindOf(err) != remote.KindFailed || !strings.Contains(err.Error(), test.words) {
				t.Errorf("got %s, %v, want %q", remote.KindOf(err), err, test.words)
			}
			if test.dir != "/proc" {
				wantFiles(t, test.dir)
			}
		})
	}
}

// Parts of abandoned uploads are removed in the end.
func TestRealUploadRemovesOldParts(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{
		".muster-0badcafe-a.part": 9 * 24 * time.Hour,
		".muster-0badcafe-b.part": time.Hour,
		"muster.part":             900 * 24 * time.Hour,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := connect(t, sshd.Host).Upload(t.Context(),
		upload(filepath.Join(dir, "file"), 0o644, []byte("x"))); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, dir, ".muster-0badcafe-b.part", "file", "muster.part")
}

// Many hosts, one content.
func TestRealUploadsAtATime(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{})
	text := noise(1 << 20)
	sum := sha256.Sum256(text)
	dir := t.TempDir()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			u := upload(filepath.Join(dir, "file"+string(rune('0'+i))), 0o644, text)
			u.SHA256 = sum
			if err := connect(t, sshd.Host).Upload(t.Context(), u); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	wantFiles(t, dir, "file0", "file1", "file2", "file3", "file4", "file5", "file6", "file7")
}
