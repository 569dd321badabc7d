package remote_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// A cutter passes a connection on until so many bytes went up or down after it was armed;
// then it is cut.
type cutter struct {
	address string // of the host
	armed   atomic.Bool
	up      atomic.Int64 // bytes that may go to the host yet
	down    atomic.Int64 // and from it
	wait    sync.WaitGroup

	cuts atomic.Int32
	mu   sync.Mutex
	open []net.Conn // guarded by mu
}

// cut cuts what is open.
func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		conn.Close()
		c.cuts.Add(1)
	}
	c.open = nil
}

// start listens in front of a host.
func (c *cutter) start(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.wait.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			c.wait.Go(func() { c.serve(near) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		c.wait.Wait()
	})
	return l.Addr().(*net.TCPAddr).Port
}

func (c *cutter) serve(near net.Conn) {
	far, err := net.Dial("tcp", c.address)
	if err != nil {
		near.Close()
		return
	}
	c.mu.Lock()
	c.open = append(c.open, near)
	c.mu.Unlock()
	var both sync.WaitGroup
	pass := func(to, from net.Conn, left *atomic.Int64) {
		defer near.Close()
		defer far.Close()
		buffer := make([]byte, 512)
		for {
			n, err := from.Read(buffer)
			if c.armed.Load() {
				n = int(min(int64(n), max(left.Add(-int64(n))+int64(n), 0)))
			}
			if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil ||
				c.armed.Load() && left.Load() <= 0 {
				return
			}
		}
	}
	both.Go(func() { pass(far, near, &c.up) })
	both.Go(func() { pass(near, far, &c.down) })
	both.Wait()
}

// A connection that is cut in the middle is made anew once: the attempt ends as if nothing
// had been.
func TestRealRecordIsFollowedOverANewConnection(t *testing.T) {
	t.Parallel()
	h := newRecordingHost(t, sshtest.Options{})
	c := &cutter{address: net.JoinHostPort(h.host.Address, fmt.Sprint(h.host.Port))}
	h.host.Address, h.host.Port = "127.0.0.1", c.start(t)
	conn, file := h.connect(), filepath.Join(t.TempDir(), "file")
	go func() {
		for tick := time.Tick(10 * time.Millisecond); t.Context().Err() == nil; <-tick {
			if _, err := os.Stat(file); err == nil {
				c.cut() // the first connection; the next one is left alone
				return
			}
		}
	}()
	r := step("j", 1)
	result, err := conn.Run(t.Context(), remote.Command{
		Shell: fmt.Sprintf("echo begun; echo line >> %s; sleep 1; echo ended", file), Bound: time.Minute, Record: &r})
	wantEnd(t, result, err, "exit 0: begun\nended\n")
	if text, err := os.ReadFile(file); err != nil || string(text) != "line\n" || c.cuts.Load() != 1 {
		t.Errorf("the file has %q, %v, want one line; %d cuts", text, err, c.cuts.Load())
	}
}

// Wherever the line is cut, the command runs once at most, and the next attempt hears the
// truth: it takes what was done, or does it.
func TestRealRecordSurvivesEveryCut(t *testing.T) {
	t.Parallel()
	h := newRecordingHost(t, sshtest.Options{})
	c := &cutter{address: net.JoinHostPort(h.host.Address, fmt.Sprint(h.host.Port))}
	through := *h
	through.host.Address, through.host.Port = "127.0.0.1", c.start(t)
	dir := t.TempDir()

	if _, err := h.run(step("first", 0), "true"); err != nil {
		t.Fatal(err)
	}
	attached, cut := 0, 0
	attempt := func(i int, up, down int64) {
		file := filepath.Join(dir, fmt.Sprint(i))
		first := step(fmt.Sprint("job", i), int64(2*i+1))
		shell := fmt.Sprintf("echo line >> %s; echo out", file)
		// Connected while nothing is cut, like one that was connected long ago.
		c.armed.Store(false)
		conn := through.connect()
		c.up.Store(up)
		c.down.Store(down)
		c.armed.Store(true)
		result, err := conn.Run(t.Context(), remote.Command{Shell: shell, Bound: time.Minute, Record: &first})
		if err != nil {
			cut++
			if k := remote.KindOf(err); k != remote.KindLost && (k != remote.KindUnreachable || wasSent(err)) {
				t.Errorf("got %v (%s, sent %t), want that it is lost", err, k, wasSent(err))
			}
		} else {
			wantEnd(t, result, err, "exit 0: out\n")
		}
		conn.Close()
		second := again(step(first.Job, int64(2*i+2)))
		second.Since = step("", 1).Token
		result, err = h.run(second, shell)
		if result.Attached {
			attached++
			result.Attached = false
		}
		wantEnd(t, result, err, "exit 0: out\n")
		if text, err := os.ReadFile(file); err != nil || string(text) != "line\n" {
			t.Errorf("cut after %d up, %d down: the file has %q, %v, want one line", up, down, text, err)
		}
	}
	const far = 1 << 30
	i := 0
	for up := int64(0); up < 13_000; up += 1000 { // the request takes some 11,000 bytes
		attempt(i, up, far)
		i++
	}
	for down := int64(0); down < 1100; down += 40 {
		attempt(i, far, down)
		i++
	}
	t.Logf("%d of %d were cut, %d second attempts were attached", cut, i, attached)
	if cut < 10 || attached < 6 || cut == i {
		t.Errorf("%d of %d were cut and %d attached: that is no test of all places", cut, i, attached)
	}
}
