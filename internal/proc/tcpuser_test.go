package proc_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"muster/internal/proc"
)

// The kernel says which user's program is at the other end of a connection over loopback.
func TestTheUserOfATCPConnectionIsKnown(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if got := dialed(t, l, nil); got != os.Geteuid() {
			t.Errorf("%s: uid %d", address, got)
		}
		if os.Geteuid() == 0 { // as another user
			if got := dialed(t, l, []string{"setpriv", "--reuid=61234", "--clear-groups"}); got != 61234 {
				t.Errorf("%s: uid %d of another user", address, got)
			}
		}
	}
}

// dialed returns the uid at the other end of a connection, which another program may dial.
func dialed(t *testing.T, l net.Listener, as []string) int {
	t.Helper()
	if as == nil {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	} else {
		host, port, _ := net.SplitHostPort(l.Addr().String())
		ctx, cancel := context.WithCancel(t.Context())
		script := "exec 3<>/dev/tcp/" + strings.Trim(host, "[]") + "/" + port + "; read <&3"
		cmd := exec.CommandContext(ctx, as[0], append(as[1:], "bash", "-c", script)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { cancel(); _ = cmd.Wait() }()
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	uid, err := proc.UserOfTCP(c)
	if err != nil {
		t.Fatal(err, strconv.Quote(c.RemoteAddr().String()))
	}
	return uid
}

func TestAUnixSocketHasNoUserOfTCP(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := proc.UserOfTCP(a); err == nil {
		t.Error("a pipe has a user")
	}
}
