package sdnotify_test

import (
	"net"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"muster/internal/sdnotify"
)

func TestWhatIsSaidArrives(t *testing.T) {
	t.Parallel()
	for name, socket := range map[string]string{"a file": filepath.Join(t.TempDir(), "s"),
		"an abstract name": "@muster-test-" + strconv.Itoa(time.Now().Nanosecond())} {
		l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		u := sdnotify.New(sdnotify.Environment{Socket: socket})
		for _, c := range []struct {
			say  func() error
			want string
		}{
			{u.Ready, "READY=1"},
			{func() error { return u.Status("serves\nREADY=0") }, "STATUS=serves READY=0"},
			{u.Reloading, "RELOADING=1"},
			{func() error { return u.Status("one") }, "STATUS=one"},
			{func() error { return u.Status("one") }, ""},
			{func() error { return u.Status("two") }, "STATUS=two"},
			{u.Alive, "WATCHDOG=1"},
			{func() error { return u.Stopping("drains") }, "STOPPING=1\nSTATUS=drains"},
		} {
			if err := c.say(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if c.want == "" {
				continue
			}
			buf := make([]byte, 200)
			n, err := l.Read(buf)
			if err != nil || string(buf[:n]) != c.want {
				t.Errorf("%s: %q, %v, want %q", name, buf[:n], err, c.want)
			}
		}
	}
}

func TestTheWatchdogIsThatOfThisProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		usec, pid string
		want      time.Duration
	}{
		{"30000000", "7", 30 * time.Second}, {"30000000", "", 30 * time.Second}, {"30000000", "8", 0},
		{"", "7", 0}, {"x", "7", 0}, {"-1", "7", 0}, {"0", "", 0},
	} {
		u := sdnotify.New(sdnotify.Environment{Socket: "s", WatchdogUsec: c.usec, WatchdogPID: c.pid, PID: 7})
		if got := u.Watchdog(); got != c.want {
			t.Errorf("%q of process %q: %s, want %s", c.usec, c.pid, got, c.want)
		}
	}
	var nobody *sdnotify.Unit
	if sdnotify.New(sdnotify.Environment{}) != nil || nobody.Watchdog() != 0 || nobody.Ready() != nil ||
		nobody.Status("x") != nil || nobody.Alive() != nil {
		t.Error("a process that systemd has not started says something")
	}
}
