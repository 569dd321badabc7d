package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/sshtest"
)

// bringing is a house with one host that keeps records, behind a line that sticks.
type bringing struct {
	*recording
	line *stickyLine
	dir  string // where the file goes
}

// newBringing starts one. The line sticks after so many bytes on a connection.
func newBringing(t *testing.T, most int64) *bringing {
	t.Helper()
	s := sshtest.StartSSHD(t, sshtest.Options{})
	b := &bringing{dir: t.TempDir(),
		line: newStickyLine(t, fmt.Sprintf("%s:%d", s.Address, s.Port), most)}
	h := newCellar(t, fmt.Sprintf("defaults: {fence: required}\nhosts:\n  - {name: fw1, address: 127.0.0.1, "+
		"port: %s, user: %s, key: %s, host_key: %q}\n", b.line.port, s.User, s.Key, s.HostKey))
	h.write("own.yaml", strings.ReplaceAll(bring, "/tmp/image", b.dir+"/image"))
	h.configure(map[string]any{"runbooks": []string{h.file("own.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	b.recording = &recording{house: h, homes: []string{filepath.Dir(s.Key)}, master: h.master()}
	return b
}

// bring brings a file of so many bytes, and returns its content.
func (b *bringing) bring(size int) (jobs.TaskID, []byte) {
	b.t.Helper()
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(rand.Uint32())
	}
	b.write("image.bin", string(text))
	var task jobs.TaskInfo
	b.query(&task, "run", "bring", "--on", "all", "--arg-file", "image="+b.file("image.bin"), "--detach")
	return task.Task, text
}

func (b *bringing) wantBrought(text []byte) {
	b.t.Helper()
	got, err := os.ReadFile(b.dir + "/image")
	if err != nil || !bytes.Equal(got, text) {
		b.t.Errorf("the file has %d bytes, %v, want the %d that were sent last", len(got), err, len(text))
	}
	if all, err := os.ReadDir(b.dir); err != nil || len(all) != 1 {
		b.t.Errorf("in the folder are %v, %v, want the file alone", all, err)
	}
}

// A worker that is killed in the middle of an upload costs only the bytes under way: the next one
// continues where the file ends, even before the host has noticed the death of the first.
func TestAKilledWorkersUploadGoesOn(t *testing.T) {
	t.Parallel()
	const size, came = 8 << 20, 4 << 20
	b := newBringing(t, came)
	id, text := b.bring(size)
	b.line.await(b.line.stuck)
	if _, err := os.Stat(b.dir + "/image"); !os.IsNotExist(err) {
		t.Errorf("half a file has its name: %v", err)
	}
	before := b.line.gone.Load()
	b.signal(syscall.SIGKILL)
	wantOutcomes(t, b.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 1})
	b.wantBrought(text)
	if again := b.line.gone.Load() - before; again > size-came+1<<20 {
		t.Errorf("%d bytes were sent afterwards, want about %d", again, size-came)
	}
	if said, _ := b.muster("logs", string(id)+":fw1"); !strings.Contains(said, "were there already") {
		t.Errorf("muster logs says %q", said)
	}
	b.line.release()
	b.line.await(b.line.freed)
	b.wantBrought(text)
}

// A stopped worker continues after its lock has ended and a newer attempt has run: all its bytes
// arrive, and the host refuses them.
func TestAStoppedWorkersUploadIsRefused(t *testing.T) {
	t.Parallel()
	const size = 1 << 20 // less than is sent before the first answer
	b := newBringing(t, size/2)
	id, text := b.bring(size)
	b.line.await(b.line.stuck)
	b.line.await(b.line.sent) // all bytes for the host
	b.signal(syscall.SIGSTOP)
	stopped := children(b.master.cmd.Process.Pid)

	b.redis.Do(t, "HDEL", "muster:{default}:locks", "fw1")
	b.redis.Do(t, "ZADD", "muster:{default}:again", "XX", 1, string(id)+":fw1")
	b.redis.Do(t, "PUBLISH", "muster:{default}:wake", "")
	wantOutcomes(t, b.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 1})
	b.wantBrought(text)
	later, newer := b.bring(size)
	wantOutcomes(t, b.wait(later), map[jobs.Outcome]int{jobs.Succeeded: 1})
	b.wantBrought(newer)

	for _, pid := range stopped {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
	b.line.release()
	b.master.await("the host has seen a newer attempt")
	b.wantBrought(newer)
	if j := b.jobs(id)[0]; j.Outcome != jobs.Succeeded || j.Attempt != 2 {
		t.Errorf("the job is %+v, want what attempt 2 said", j)
	}
}

// stickyLine is a line to a host on which one connection sticks, towards the host, after so many
// bytes. Later bytes are kept until it is released.
type stickyLine struct {
	t     *testing.T
	port  string
	most  int64
	gone  atomic.Int64  // bytes that went to the host, over all connections
	stuck chan struct{} // closed when one sticks
	sent  chan struct{} // closed when twice as much was sent
	freed chan struct{} // closed when all kept bytes have gone
	open  chan struct{}

	release func()
	once    sync.Once // for the one that sticks
}

func newStickyLine(t *testing.T, addr string, most int64) *stickyLine {
	t.Helper()
	s := &stickyLine{t: t, most: most, stuck: make(chan struct{}), sent: make(chan struct{}),
		freed: make(chan struct{}), open: make(chan struct{})}
	s.release = sync.OnceFunc(func() { close(s.open) })
	s.port = newLine(t, addr, s.forward, nil)
	t.Cleanup(s.release) // before the line waits for its connections
	return s
}

func (s *stickyLine) await(event <-chan struct{}) {
	s.t.Helper()
	select {
	case <-event:
	case <-time.After(30 * time.Second):
		s.t.Fatal("the line is not used as it should be")
	}
}

// forward forwards the bytes to the host.
func (s *stickyLine) forward(down, up net.Conn) {
	defer up.Close()
	defer down.Close()
	var came int64
	for buf := make([]byte, 32<<10); ; {
		n, err := down.Read(buf)
		if err != nil {
			return
		}
		if came += int64(n); came > s.most {
			first := false
			s.once.Do(func() { first = true })
			if first {
				s.stick(down, up, buf[:n], came)
				return
			}
		}
		s.gone.Add(int64(n))
		if _, err := up.Write(buf[:n]); err != nil {
			return
		}
	}
}

// stick keeps bytes, from kept on, until it is released, and hides the end of the connection from
// the host until then. came holds all bytes so far, with kept: how many depends on the sizes of the
// reads.
func (s *stickyLine) stick(down, up net.Conn, kept []byte, came int64) {
	defer close(s.freed)
	close(s.stuck)
	var all sync.WaitGroup
	defer all.Wait()
	pieces := make(chan []byte, 1000)
	all.Go(func() {
		defer close(pieces)
		pieces <- bytes.Clone(kept)
		told := sync.OnceFunc(func() { close(s.sent) })
		for {
			buf := make([]byte, 32<<10)
			n, err := down.Read(buf)
			if err != nil {
				return
			}
			pieces <- buf[:n]
			if came += int64(n); came >= 2*s.most {
				told()
			}
		}
	})
	<-s.open
	for p := range pieces {
		if _, err := up.Write(p); err != nil {
			down.Close()
		}
	}
}
