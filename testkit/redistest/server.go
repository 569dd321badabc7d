// Package redistest starts the Redis servers that tests of the queue need, and checks that their
// data is consistent.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"muster/jobs/queue"
	"muster/testkit/porttest"
)

// Server is a redis-server of a test.
type Server struct {
	Addr  string
	Dir   string
	args  []string
	ready string // words in its log when it is up
	cmd   *exec.Cmd
	log   *lineLog
}

// Config returns the configuration with which the queue uses the server.
func (s *Server) Config() queue.Config {
	c := queue.DefaultConfig()
	c.URL = "redis://" + s.Addr + "/0"
	return c
}

// StartServer starts redis-server on a free port of 127.0.0.1 with an
// append-only file, and stops it when the test ends. More arguments are given
// to the server.
func StartServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, append(slices.Clone(plain), args...))
}

// plain are the arguments of every server.
var plain = []string{"--save", "", "--appendonly", "yes", "--maxmemory-policy", "noeviction"}

// StartServerWith is StartServer with a configuration file instead of arguments.
func StartServerWith(t testing.TB, conf string) *Server {
	t.Helper()
	return start(t, []string{conf})
}

func start(t testing.TB, args []string) *Server {
	t.Helper()
	return startReady(t, "Ready to accept connections", args)
}

// startReady starts a server whose log contains ready when it is up.
func startReady(t testing.TB, ready string, args []string) *Server {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("redis-server is missing: run `make test`, which installs it")
	}
	s := &Server{Dir: t.TempDir(), ready: ready}
	// A program that does not ask porttest may have taken the port first.
	for range 5 {
		s.Addr = porttest.Addr(t)
		// A configuration file comes first, the rest wins over it.
		s.args = append(append([]string{path}, args...), "--bind", "127.0.0.1", "--dir", s.Dir)
		s.args = append(s.args, ports(t, args, s.Addr)...)
		if err = s.Start(); err == nil {
			t.Cleanup(s.Stop)
			return s
		}
	}
	t.Fatalf("redis-server: %v", err)
	return nil
}

// Start starts the server, again after Stop or Kill, on the same address with
// the same files. It returns when it accepts connections.
func (s *Server) Start() error {
	s.log = newLineLog(s.ready)
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	s.cmd.Stdout = s.log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func(c *exec.Cmd) { ended <- c.Wait() }(s.cmd)
	s.log.ended = ended
	select {
	case <-s.log.found:
		return nil
	case err := <-ended:
		return fmt.Errorf("ended at start: %v: %s", err, s.log.text())
	case <-time.After(30 * time.Second):
		s.Kill()
		return errors.New("not ready after 30 s")
	}
}

// Stop ends the server in an orderly way.
func (s *Server) Stop() { s.end(os.Interrupt) }

// Kill ends the server at once.
func (s *Server) Kill() { s.end(os.Kill) }

func (s *Server) end(sig os.Signal) {
	if s.cmd == nil {
		return
	}
	s.cmd.Process.Signal(sig)
	<-s.log.ended
	s.log.Close() // ends its reader
	s.cmd = nil
}

// Do sends a command to the server, for tests that turn it against its users:
// another maxmemory, a lock that ends sooner.
func (s *Server) Do(t testing.TB, command ...any) any {
	t.Helper()
	rdb := client(s.Addr)
	defer rdb.Close()
	answer, err := rdb.Do(context.Background(), command...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("redis %v: %v", command, err)
	}
	return answer
}

// Log returns what the server has logged since it was last started or asked, at most 100 lines.
func (s *Server) Log() string { return s.log.text() }

// Process returns the server's process, for tests that stop it for a moment.
func (s *Server) Process() *os.Process { return s.cmd.Process }

// StartMini starts an embedded Redis. Its TTLs do not pass by themselves.
func StartMini(t testing.TB) (*miniredis.Miniredis, queue.Config) {
	t.Helper()
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	c := queue.DefaultConfig()
	c.URL, c.Embedded, c.Timeout = "redis://"+m.Addr()+"/0", true, 30*time.Second
	return m, c
}

// lineLog stores the log of a server and signals a certain text in it.
type lineLog struct {
	*io.PipeWriter
	found chan struct{}
	ended chan error
	lines chan string
}

func newLineLog(want string) *lineLog {
	r, w := io.Pipe()
	l := &lineLog{PipeWriter: w, found: make(chan struct{}), lines: make(chan string, 100)}
	go func() {
		seen := false
		for sc := bufio.NewScanner(r); sc.Scan(); {
			if !seen && strings.Contains(sc.Text(), want) {
				seen = true
				close(l.found)
			}
			select {
			case l.lines <- sc.Text():
			default:
			}
		}
	}()
	return l
}

func (l *lineLog) text() string {
	var b strings.Builder
	for {
		select {
		case line := <-l.lines:
			b.WriteString(line + "\n")
		default:
			return b.String()
		}
	}
}
