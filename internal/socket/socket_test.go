package socket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "so") // the path of a socket may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "in", "s")
}

func TestASocketIsForItsUserAndItsGroup(t *testing.T) {
	t.Parallel()
	path := short(t)
	l, err := Listen(t.Context(), path, "12345")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if st := info.Sys().(*syscall.Stat_t); info.Mode().Perm() != 0o660 || st.Gid != 12345 {
		t.Errorf("the socket has mode %o and group %d", info.Mode().Perm(), st.Gid)
	}
	if _, err := Listen(t.Context(), short(t), "no-such-group"); err == nil ||
		!strings.Contains(err.Error(), `no group "no-such-group"`) {
		t.Errorf("a group that is not there: %v", err)
	}
}

func TestThePeerIsWhoTheKernelSays(t *testing.T) {
	t.Parallel()
	l, err := Listen(t.Context(), short(t), "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for _, end := range []net.Conn{c, in} {
		if p, err := PeerOf(end); err != nil || p != (Peer{os.Getuid(), os.Getpid()}) || !p.Known() {
			t.Errorf("got %+v, %v", p, err)
		}
	}
	tcp, other := net.Pipe()
	defer tcp.Close()
	defer other.Close()
	if p, err := PeerOf(tcp); err == nil {
		t.Errorf("of a pipe: %+v", p)
	}
}

func TestNoTwoUsersHaveOneName(t *testing.T) {
	t.Parallel()
	plain := func(s string) bool { return !strings.Contains(s, `\`) }
	for _, c := range []struct{ name, uid, want string }{
		{"alice", "1000", "alice"},
		{"1001", "1000", "1000"},
		{`DOM\alice`, "1000", "1000"},
		{"", "1000", "1000"},
	} {
		if got := nameOf(c.name, c.uid, plain); got != c.want {
			t.Errorf("%q with uid %s is %q, want %q", c.name, c.uid, got, c.want)
		}
	}
	if got := (Peer{UID: 61234}).User(plain); got != "61234" {
		t.Errorf("a user without a name is %q", got)
	}
	if (Peer{UID: nobody}).Known() {
		t.Error("a user of another namespace is known")
	}
}

func TestADeadSocketIsReplacedOnceAndALiveOneNever(t *testing.T) {
	t.Parallel()
	path := short(t)
	dead, err := Listen(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	dead.Close()

	var wait sync.WaitGroup
	var mu sync.Mutex
	var alive []net.Listener
	for range 8 {
		wait.Go(func() {
			if l, err := Listen(t.Context(), path, ""); err == nil {
				mu.Lock()
				defer mu.Unlock()
				alive = append(alive, l)
			}
		})
	}
	wait.Wait()
	if len(alive) != 1 {
		t.Fatalf("%d servers listen at one path, want 1", len(alive))
	}
	defer alive[0].Close()
	_, err = Listen(t.Context(), path, "")
	if err == nil || !strings.Contains(err.Error(), "another server listens there: process ") {
		t.Errorf("a live one: %v", err)
	}
}

func TestAFolderOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	path := short(t)
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), path, ""); err == nil || !strings.Contains(err.Error(), "everybody can write") {
		t.Errorf("a folder that everybody can write: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 61234, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), path, ""); err == nil || !strings.Contains(err.Error(), "belongs to user 61234") {
		t.Errorf("a folder of somebody else: %v", err)
	}
}
