package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockPoll   = 50 * time.Millisecond
	holderSize = 512 // bytes of a lock file that are read and written
)

// Holder describes the holder of a lock in its file. It is for people; only the lock itself is
// reliable.
type Holder struct {
	PID  int // 0: not known
	Text string
}

// LockedError says that somebody else has the lock.
type LockedError struct {
	Path   string
	Holder Holder
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.Holder.PID > 0 {
		who = fmt.Sprintf("pid %d", e.Holder.PID)
	}
	if e.Holder.Text != "" {
		who += " (" + e.Holder.Text + ")"
	}
	return fmt.Sprintf("%s is locked by %s", e.Path, who)
}

// A LockFile is a lock that is held. It belongs to the open file: whoever
// inherits that holds the lock too, until the last of them has ended or closed
// it. The file itself is never removed, or two could lock two files of one name.
type LockFile struct {
	f *os.File
}

// OwnDir makes a folder for locks that only this user can write. One that is
// somebody else's, or open to others, is refused: who owns it owns the locks.
func OwnDir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return fmt.Errorf("%s is not a folder", path)
	case int(st.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to user %d: choose another folder", path, st.Uid)
	case st.Mode&0o022 != 0:
		return fmt.Errorf("%s can be written by others: chmod 700 it", path)
	}
	return nil
}

// Lock takes the lock, without waiting. The error is a *LockedError if somebody
// else has it.
func Lock(path string) (*LockFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return &LockFile{f}, nil
	}
	defer f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &LockedError{path, readHolder(f)}
	}
	return nil, &os.PathError{Op: "flock", Path: path, Err: err}
}

// WaitFree waits until nobody has the lock any more, and takes it.
func WaitFree(ctx context.Context, path string) (*LockFile, error) {
	return Await(ctx, func() (*LockFile, error) { return Lock(path) })
}

// Await waits until take returns a lock, or another error than that somebody has it.
func Await(ctx context.Context, take func() (*LockFile, error)) (*LockFile, error) {
	// A blocking flock could not be given up, so it is tried again and again.
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		l, err := take()
		var locked *LockedError
		if !errors.As(err, &locked) {
			return l, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

// HeldLock is the lock that was inherited with f.
func HeldLock(f *os.File) *LockFile { return &LockFile{f} }

// File returns the file that another process must inherit to hold the lock.
func (l *LockFile) File() *os.File { return l.f }

// Close gives up this process' part of the lock.
func (l *LockFile) Close() error { return l.f.Close() }

// Free ends the lock for everybody who inherited it. A lock that no process shall inherit
// ends so: a process that is being started has a copy of each open file until its program
// begins, and after Close alone it would hold the lock for that long.
func (l *LockFile) Free() error {
	return errors.Join(unix.Flock(int(l.f.Fd()), unix.LOCK_UN), l.f.Close())
}

// Holder returns the content of the file: the last holder that signed, maybe long ago.
func (l *LockFile) Holder() Holder { return readHolder(l.f) }

// Sign writes into the file who holds the lock. If that fails, because the disk is
// full, the file is emptied: it shall not name who signed before.
func (l *LockFile) Sign(h Holder) error {
	text := strconv.Itoa(h.PID) + " " + strings.Join(strings.Fields(h.Text), " ") + "\n"
	if len(text) > holderSize {
		return fmt.Errorf("sign %s: %d bytes, at most %d", l.f.Name(), len(text), holderSize)
	}
	if _, err := l.f.WriteAt([]byte(text), 0); err != nil {
		return errors.Join(err, l.f.Truncate(0))
	}
	return l.f.Truncate(int64(len(text)))
}

// readHolder reads `pid text`. Any other content was not written by muster.
func readHolder(f *os.File) Holder {
	text := make([]byte, holderSize)
	n, err := f.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return Holder{}
	}
	return parseHolder(string(text[:n]))
}

func parseHolder(text string) Holder {
	line, _, ok := strings.Cut(text, "\n")
	if !ok {
		return Holder{}
	}
	number, rest, _ := strings.Cut(line, " ")
	pid, err := strconv.Atoi(number)
	if err != nil || pid < 0 {
		return Holder{}
	}
	return Holder{pid, rest}
}
