// Package nearby finds the server of this machine by its default sockets.
//
// Floor 2: may import internal/socket and what is below.
package nearby

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"muster/internal/socket"
)

// Servers finds the server of this machine by the default sockets. All connections of a client go
// to the one that it found first.
type Servers struct {
	own    string // path at which only a server of this user may answer; empty: none
	system string // path of the server of the machine
	dialer *net.Dialer

	mu    sync.Mutex
	found string // path; empty: not found yet
}

// New takes the paths in the order of internal/settings: the last one is the machine's.
func New(paths []string, dialer *net.Dialer) *Servers {
	l := &Servers{system: paths[len(paths)-1], dialer: dialer}
	if len(paths) > 1 {
		l.own = paths[0]
	}
	return l
}

// Dial connects to the first socket with a server. The error is a *NowhereError if there is none.
func (l *Servers) Dial(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found != "" {
		return l.connect(ctx, l.found)
	}
	none := &NowhereError{}
	for _, path := range []string{l.own, l.system} {
		if path == "" {
			continue
		}
		c, err := l.connect(ctx, path)
		if err == nil {
			l.found = path
			return c, nil
		}
		none.looked = append(none.looked, fmt.Sprintf("unix://%s: %s", path, whyNot(err)))
	}
	return nil, none
}

// connect connects to a path. If another user could have made the socket, the kernel says who did.
func (l *Servers) connect(ctx context.Context, path string) (net.Conn, error) {
	c, err := l.dialer.DialContext(ctx, "unix", path)
	if err != nil || path != l.own {
		return c, err
	}
	p, err := socket.PeerOf(c)
	if err == nil && p.UID != os.Getuid() {
		err = fmt.Errorf("%s listens there, not yours", p)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// whyNot explains in few words why no server answers at a socket.
func whyNot(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is none"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nobody listens there any more"
	case errors.Is(err, fs.ErrPermission):
		return "you may not use it: ask for its group (server.socket_group), and log in again"
	}
	return err.Error()
}

// NowhereError names the places where no server was found.
type NowhereError struct{ looked []string }

func (e *NowhereError) Error() string { return strings.Join(e.looked, "\n") }
