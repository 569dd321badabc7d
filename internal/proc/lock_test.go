package proc

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestLockNamesItsHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()

	var locked *LockedError
	if _, err := Lock(path); !errors.As(err, &locked) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("second lock before the first signed: %v, want a LockedError", err)
	}
	for _, h := range []Holder{{1234, "a master of some length"}, {56, "short\nand in one line"}, {7, ""}} {
		if err := first.Sign(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Sign(Holder{1234, "master of\tfw 1"}); err != nil {
		t.Fatal(err)
	}
	_, err = Lock(path)
	if !errors.As(err, &locked) {
		t.Fatalf("second lock: %v, want a LockedError", err)
	}
	if diff := cmp.Diff(&LockedError{path, Holder{1234, "master of fw 1"}}, locked); diff != "" {
		t.Error(diff)
	}
	if want := path + " is locked by pid 1234 (master of fw 1)"; err.Error() != want {
		t.Errorf("says %q, want %q", err, want)
	}
}

func TestLockIsFreeAfterClose(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	// Children of other tests have a copy of the open file between their fork and their exec.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 {
		l, err := WaitFree(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
}

func TestLockErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "no", "such"), link} {
		var locked *LockedError
		if _, err := Lock(path); err == nil || errors.As(err, &locked) {
			t.Errorf("lock %s: %v, want an error that is no LockedError", path, err)
		}
	}
	l, err := Lock(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.Sign(Holder{1, strings.Repeat("x", holderSize)}); err == nil {
		t.Error("signed with a text that nobody could read back")
	}
}

// A signature that cannot be written must not leave an older one behind.
func TestOnAFullDiskNobodyIsNamed(t *testing.T) {
	t.Parallel()
	got := receive[[]string](t, start(t, "full", filepath.Join(t.TempDir(), "slot-1")).Conn)
	if got[0] != "{7 before}" || got[1] != "{0 }" || !strings.Contains(got[2], "slot-1: file too large") {
		t.Errorf("before, after, error: %q, want 7, nobody, and the file that is too large", got)
	}
}

// A copy of the open file, as a process has it that is just being started, does not keep a
// lock that was freed.
func TestFreedInSpiteOfCopies(t *testing.T) {
	t.Parallel()
	for _, free := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "lock")
		l, err := Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.FcntlInt(l.File().Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		end := l.Close
		if free {
			end = l.Free
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		again, err := Lock(path)
		if (err == nil) != free {
			t.Errorf("freed: %t, lock again: %v", free, err)
		}
		if err == nil {
			_ = again.Close()
		}
	}
}

// The lock belongs to the child alone once its parent has closed it.
func TestLockLivesWithTheChild(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "slot-1")
	l, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	s := spec("say", "up")
	s.Files = []*os.File{l.File()}
	c := startSpec(t, s)
	l.Sign(Holder{c.PID, "default"})
	l.Close()
	receive[string](t, c.Conn)

	var locked *LockedError
	if _, err := Lock(path); !errors.As(err, &locked) || locked.Holder.PID != c.PID {
		t.Fatalf("lock of a living child: %v, want a LockedError that names pid %d", err, c.PID)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := WaitFree(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("wait with an ended context: %v, want Canceled", err)
	}

	free := make(chan error)
	go func() {
		l, err := WaitFree(t.Context(), path)
		if err == nil {
			l.Close()
		}
		free <- err
	}()
	c.Kill()
	if err := <-free; err != nil {
		t.Errorf("wait for the end of the child: %v", err)
	}
}

func FuzzHolder(f *testing.F) {
	f.Add("12 master\n")
	f.Add("12\n")
	f.Add("-1 x")
	f.Add("99999999999999999999 x\n")
	f.Fuzz(func(t *testing.T, text string) {
		h := parseHolder(text)
		if h.PID < 0 || strings.Contains(h.Text, "\n") {
			t.Errorf("%q is %+v", text, h)
		}
	})
}
