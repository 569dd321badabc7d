package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestOnlyRegularFilesAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	if err := errors.Join(os.WriteFile(file, []byte("12345"), 0o640), os.Symlink(file, link),
		syscall.Mkfifo(pipe, 0o600), os.Symlink("/dev/zero", filepath.Join(dir, "zero"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		most int
		want string // empty: it is read
	}{
		{file, 5, ""},
		{link, 5, ""},
		{file, 4, "has more than 4 bytes"},
		{pipe, 5, "pipe: it is a named pipe, not a regular file"},
		{"/dev/zero", 5, "/dev/zero: it is a device, not a regular file"},
		{filepath.Join(dir, "zero"), 5, "zero: it is a device"},
		{dir, 5, "it is a folder"},
		{filepath.Join(dir, "none"), 5, "no such file"},
		{"/proc/self/mem", 5, "input/output error"}, // regular, and read without end but for the error
	} {
		data, err := Read(c.path, c.most)
		switch {
		case c.want == "" && (err != nil || string(data) != "12345"):
			t.Errorf("%s: %q, %v", c.path, data, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %q, %v, want %q", c.path, data, err, c.want)
		}
	}
	if _, err := Read(filepath.Join(dir, "none"), 5); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is not there: %v", err)
	}
	if _, mode, err := Private(link, 5); err != nil || mode.Perm() != 0o640 {
		t.Errorf("the mode behind a link is %o, %v", mode.Perm(), err)
	}
}

func TestWhatHangsIsLeftAlone(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	ended := make(chan struct{})
	_, err := within(time.Millisecond, "/net/x", func() (int, error) {
		defer close(ended)
		<-release
		return 1, nil
	})
	if err == nil || !strings.Contains(err.Error(), "/net/x cannot be read within 1ms") {
		t.Errorf("the error is %v", err)
	}
	close(release)
	<-ended
	if v, err := within(time.Minute, "x", func() (int, error) { return 1, nil }); v != 1 || err != nil {
		t.Errorf("after it: %d, %v", v, err)
	}
}
