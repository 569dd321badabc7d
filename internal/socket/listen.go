package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"muster/internal/proc"
)

const (
	// mode lets the user and the group of the server use its socket.
	mode = 0o660
	// closed is the mode of a socket until its group is right.
	closed = 0o600
	// dialTimeout bounds the question whether somebody listens.
	dialTimeout = time.Second
)

// Listen listens at a path. The socket has mode 0660 and belongs to the group; with an empty
// group, to the group that new files in its folder get. The folder is made if only it is
// missing.
func Listen(ctx context.Context, path, group string) (net.Listener, error) {
	gid, err := groupID(group)
	if err != nil {
		return nil, err
	}
	if err := folder(filepath.Dir(path)); err != nil {
		return nil, err
	}
	// Two servers that both see a dead socket must not both replace it.
	lock, err := proc.Lock(path + ".lock")
	if locked := (*proc.LockedError)(nil); errors.As(err, &locked) {
		return nil, errors.New("another server begins to listen there at this moment")
	}
	if err != nil {
		return nil, err
	}
	defer lock.Free()
	if err := clear(ctx, path); err != nil {
		return nil, err
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		// Linux gives the file of the socket this mode at once, not one that the umask allows.
		control := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), closed) })
		return errors.Join(err, control)
	}}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if gid >= 0 {
		err = os.Lchown(path, -1, gid)
	}
	if err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the socket cannot be given to group %q: %w", group, err),
			l.Close())
	}
	return l, nil
}

// Group is the group that a socket belongs to.
func Group(path string) (int, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("%s: its group is not known", path)
	}
	return int(st.Gid), nil
}

// CheckGroup returns an error if the socket at the path is not for the group; empty: it may be for
// any.
func CheckGroup(path, group string) error {
	want, err := groupID(group)
	if err != nil || want < 0 {
		return err
	}
	have, err := Group(path)
	if err == nil && have != want {
		err = fmt.Errorf("%s belongs to group %d, want %d", path, have, want)
	}
	return err
}

// groupID reads the name or the number of a group; -1: none is named.
func groupID(group string) (int, error) {
	if group == "" {
		return -1, nil
	}
	if n, err := strconv.ParseUint(group, 10, 31); err == nil {
		return int(n), nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return 0, fmt.Errorf("there is no group %q on this machine: make it (groupadd), or name another",
			group)
	}
	return strconv.Atoi(g.Gid)
}

// folder makes the folder of a socket, unless it exists. It refuses a folder to which others may
// write, because they could replace the socket by one of their own.
func folder(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", path)
	case ok && st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("folder %s belongs to user %d, who could replace the socket: choose another",
			path, st.Uid)
	case info.Mode().Perm()&0o002 != 0 && info.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("everybody can write to folder %s, and replace the socket: chmod o-w it, or "+
			"choose another", path)
	}
	return nil
}

// clear removes the socket of a server that was killed. One that answers belongs to somebody,
// and what is no socket is not touched.
func clear(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return errors.New("there is something else of this name: move it away, or choose another")
	}
	c, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "unix", path)
	if err == nil {
		defer c.Close()
		if p, err := PeerOf(c); err == nil {
			return fmt.Errorf("another server listens there: %s", p)
		}
		return errors.New("another server listens there")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("nobody can tell whether another server listens there: %w", err)
	}
	return os.Remove(path)
}
