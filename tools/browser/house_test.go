package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// house is a demo that runs, and a port of this machine behind which it is.
type house struct {
	url    string // of the pages, behind the door
	port   string // of the server
	early  string // a link that logs in once, from before the story
	socket string
	binary string
	cmd    *exec.Cmd
	door   net.Listener

	mu    sync.Mutex
	conns map[net.Conn]bool
	shut  bool // the door lets nobody in
}

var demo *house

// TestMain plays the story of the demo first, which most tests look at. A short run has no story.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		os.Exit(m.Run())
	}
	code := 1
	h, err := startHouse(os.Getenv("MUSTER_DEMO_HOSTS"), false)
	if err != nil {
		fmt.Fprintln(os.Stderr, "no house to look at:", err)
	} else {
		demo = h
		code = m.Run()
		h.stop()
	}
	os.Exit(code)
}

var (
	socketLine = regexp.MustCompile(`MUSTER_URL=unix://(\S+)`)
	linkLine   = regexp.MustCompile(`http://(127\.0\.0\.1:\d+)/login/once/`)
)

// startHouse starts the demo and waits until its story is over, or, early, until one can look.
func startHouse(hosts string, early bool, more ...string) (*house, error) {
	if hosts == "" {
		hosts = "300"
	}
	binary, err := filepath.Abs("../../bin/muster")
	if err != nil {
		return nil, err
	}
	h := &house{binary: binary, conns: map[net.Conn]bool{}}
	h.cmd = exec.Command(binary,
		append([]string{"demo", "--stay", "--hosts", hosts}, more...)...)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	h.cmd.Stdout, h.cmd.Stderr = in, in
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := h.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: build it with `make build`", err)
	}
	in.Close()
	lines := bufio.NewScanner(out)
	var said strings.Builder
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if m := socketLine.FindStringSubmatch(lines.Text()); m != nil {
			h.socket = m[1]
		}
		if m := linkLine.FindStringSubmatch(lines.Text()); m != nil {
			over := h.port != "" // the second link comes after the story
			h.port, h.early = m[1], strings.TrimSpace(lines.Text())
			if early || over {
				break
			}
		}
	}
	if h.port == "" {
		return nil, fmt.Errorf("the demo ended: %v\n%s", h.cmd.Wait(), said.String())
	}
	go io.Copy(io.Discard, out)
	return h, h.open("127.0.0.1:0")
}

// open lets browsers in at a port: it passes their bytes on to the port of the server.
func (h *house) open(at string) error {
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	h.door, h.url = l, "http://"+l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go h.pass(c)
		}
	}()
	return nil
}

func (h *house) pass(c net.Conn) {
	defer c.Close()
	h.mu.Lock()
	if h.shut {
		h.mu.Unlock()
		return
	}
	h.conns[c] = true
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.conns, c)
		h.mu.Unlock()
	}()
	s, err := net.Dial("tcp", h.port)
	if err != nil {
		return
	}
	defer s.Close()
	go func() {
		io.Copy(s, c)
		s.Close()
	}()
	io.Copy(c, s)
}

// shutDoor cuts all connections, and lets nobody in until it is called with false.
func (h *house) shutDoor(shut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shut = shut
	if shut {
		for c := range h.conns {
			c.Close()
		}
	}
}

func (h *house) stop() {
	h.door.Close()
	h.cmd.Process.Signal(syscall.SIGINT)
	done := make(chan struct{})
	go func() { h.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		h.cmd.Process.Kill()
	}
}

// muster runs a command of the command line against the house.
func (h *house) muster(t testing.TB, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), h.binary, args...)
	c.Env = append(plainEnv(), "MUSTER_URL=unix://"+h.socket)
	var words strings.Builder
	c.Stderr = &words
	out, err := c.Output()
	if err != nil {
		t.Fatalf("muster %q: %v\n%s%s", args, err, out, words.String())
	}
	return string(out)
}

// link returns a link that logs a browser in once.
func (h *house) link(t testing.TB) string {
	t.Helper()
	link := strings.TrimSpace(h.muster(t, "login", "--browser"))
	return strings.Replace(link, "http://"+h.port, h.url, 1)
}

// get asks the API of the house.
func (h *house) get(t testing.TB, path string, out any) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", h.socket)
		}}}
	res, err := client.Get("http://localhost" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", path, res.Status)
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		t.Fatalf("%s: %s: %v", path, res.Status, err)
	}
}

// taskOf returns the newest task of an operator of the story.
func (h *house) taskOf(t testing.TB, operator string) string {
	t.Helper()
	var list struct {
		Tasks []struct{ Task, Operator string }
	}
	h.get(t, "/v1/tasks?limit=500", &list)
	for _, one := range list.Tasks {
		if one.Operator == operator {
			return one.Task
		}
	}
	t.Fatalf("no task of %s", operator)
	return ""
}
