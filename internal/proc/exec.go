package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// KeptEnv is the name of the variable in which Exec tells the next binary which
// file descriptors it has kept for it. Give its value to Kept, and unset it.
const KeptEnv = "MUSTER_KEPT"

// Path is the path by which this binary can be started again, also after another
// file was put in its place. argv0 is the name it was started by. A symbolic link
// stays one, because an upgrade may be the link that moves. Call it early: later
// argv0 may mean another file.
func Path(argv0 string) (string, error) {
	self, err := os.Stat("/proc/self/exe")
	if err != nil {
		return "", fmt.Errorf("path of this binary: %w", err)
	}
	found, err := exec.LookPath(argv0)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err == nil {
		if other, err := os.Stat(found); err == nil && os.SameFile(self, other) {
			return found, nil
		}
	}
	return os.Executable()
}

// tryFor bounds a trial of a binary.
const tryFor = 10 * time.Second

// Try starts the binary at path and returns what it prints. If it does not end
// well, the error has its last words.
func Try(ctx context.Context, path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.WaitDelay = time.Second // what it has started may hold the pipes
	err := cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no end within %s", tryFor)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %.500s", path, strings.Join(args, " "), err,
			strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}

// Exec puts the binary at path in the place of this one: same pid, same children,
// and the files of keep open under the same numbers. It returns only if that
// fails; then everything is as before.
//
// Until the next binary listens to signals they have their default effect, which
// is to end it. Ignore before the call what shall not do that: what is ignored
// stays so.
func Exec(path string, argv, env []string, keep []*os.File) error {
	fds := make([]int, len(keep))
	names := make([]string, len(keep))
	for i, f := range keep {
		fds[i] = int(f.Fd())
		names[i] = strconv.Itoa(fds[i])
	}
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, KeptEnv+"=")
	})
	env = append(env, KeptEnv+"="+strings.Join(names, ","))

	// A child that is forked in between would inherit what is kept, and with it the
	// ends of sockets whose closing others wait for.
	syscall.ForkLock.Lock()
	defer syscall.ForkLock.Unlock()
	err := closeOnExec(fds, 0)
	if err == nil {
		err = syscall.Exec(path, argv, env)
	}
	if back := closeOnExec(fds, unix.FD_CLOEXEC); back != nil {
		return fmt.Errorf("exec %s: %w; then: %w", path, err, back)
	}
	return fmt.Errorf("exec %s: %w", path, err)
}

// Kept returns the files that Exec kept. list is the value of KeptEnv; if it is
// empty there are none.
func Kept(list string) ([]*os.File, error) {
	if list == "" {
		return nil, nil
	}
	var fds []int
	for name := range strings.SplitSeq(list, ",") {
		fd, err := strconv.Atoi(name)
		if err != nil || fd < connFD {
			return nil, fmt.Errorf("%s=%q: want numbers of file descriptors", KeptEnv, list)
		}
		fds = append(fds, fd)
	}
	if err := closeOnExec(fds, unix.FD_CLOEXEC); err != nil {
		return nil, fmt.Errorf("%s=%q: %w", KeptEnv, list, err)
	}
	files := make([]*os.File, len(fds))
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), "kept")
	}
	return files, nil
}

// Memory is an open file without a name that holds data, to be kept over Exec.
func Memory(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("muster", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "memory")
	if _, err := f.WriteAt(data, 0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func closeOnExec(fds []int, flag int) error {
	for _, fd := range fds {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flag); err != nil {
			return fmt.Errorf("file descriptor %d: %w", fd, err)
		}
	}
	return nil
}
