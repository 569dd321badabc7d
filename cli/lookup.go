package cli

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

// lookup finds the server of this machine, by the sockets where one listens that nobody told
// otherwise. All connections of a client go to the one that was found first.
type lookup struct {
	own    string // path that only a server of this user may answer at; empty: none
	system string // path of the server of the machine
	dialer *net.Dialer

	mu    sync.Mutex
	found string // path; empty: none was found yet
}

// newLookup takes the paths as internal/settings lists them: the last one is the machine's.
func newLookup(paths []string, dialer *net.Dialer) *lookup {
	l := &lookup{system: paths[len(paths)-1], dialer: dialer}
	if len(paths) > 1 {
		l.own = paths[0]
	}
	return l
}

// dial connects to the first socket where a server listens. The error is a *nowhereError if
// there is none.
func (l *lookup) dial(ctx context.Context) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found != "" {
		return l.connect(ctx, l.found)
	}
	none := &nowhereError{}
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

// connect connects to a path. Where another user could have made the socket, the kernel says
// whose it is.
func (l *lookup) connect(ctx context.Context, path string) (net.Conn, error) {
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

// whyNot says in few words why nobody answers at a socket.
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

// nowhereError says where a server was looked for in vain.
type nowhereError struct{ looked []string }

func (e *nowhereError) Error() string { return strings.Join(e.looked, "\n") }
