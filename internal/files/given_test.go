package files

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAStreamIsReadOnlyIfTheProcessWasStartedWithIt(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		pipe:        "it is a named pipe, not a regular file",
		"/dev/zero": "it is a device, not a regular file",
		"/dev/fd/x": "no such file",
	} {
		if _, err := ReadGiven(t.Context(), path, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if data, err := ReadGiven(t.Context(), "/dev/null", 5); err != nil || len(data) != 0 {
		t.Errorf("/dev/null: %q, %v", data, err)
	}
	for _, dir := range []string{"/dev/fd", "/proc/self/fd"} {
		for text, want := range map[string]string{"12345": "", "123456": "has more than 5 bytes"} {
			r, w := inherited(t)
			path := fmt.Sprintf("%s/%d", dir, r.Fd())
			if _, err := w.WriteString(text); err != nil {
				t.Fatal(err)
			}
			w.Close()
			switch data, err := ReadGiven(t.Context(), path, 5); {
			case want == "" && (err != nil || string(data) != text):
				t.Errorf("%s: %q, %v", path, data, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: %q, %v, want %q", path, data, err, want)
			}
		}
	}
}

func TestTheEndOfTheContextEndsTheWaitForAStream(t *testing.T) {
	t.Parallel()
	r, _ := inherited(t) // nobody writes
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ReadGiven(ctx, fmt.Sprintf("/dev/fd/%d", r.Fd()), 5)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func inherited(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}
