package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/internal/fakefleet"
)

// behind starts a server to which a socket is handed that was open before, as systemd does. It
// knows the pid of the server only inside of it.
func (h *house) behind(l *net.UnixListener) *process {
	h.t.Helper()
	f, err := l.File()
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	p := &process{t: h.t, name: "server", log: newWatched(), done: make(chan struct{})}
	p.cmd = exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" server --config "$1"`, h.bin, h.file("muster.yaml"))
	p.cmd.Env = append(append(os.Environ(), h.login("server")...), "LISTEN_FDS=1")
	p.cmd.ExtraFiles = []*os.File{f}
	p.cmd.Stderr, p.cmd.Dir = p.log, h.dir
	if err := p.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	h.t.Cleanup(func() {
		p.cmd.Process.Signal(syscall.SIGTERM)
		<-p.done
	})
	return p
}

// opened opens the socket of the house as systemd does: the file stays when a server closes it.
func (h *house) opened() *net.UnixListener {
	h.t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: strings.TrimPrefix(h.url, "unix://")})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { l.Close() })
	return l
}

// A caller keeps its connection and asks as fast as it is answered, in turn what may be repeated
// and what may not; it never repeats anything by itself.
type caller struct {
	name     int
	path     string
	answered atomic.Int64
	failed   atomic.Pointer[string]
}

func (c *caller) run(ctx context.Context) {
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.path)
	}}
	defer t.CloseIdleConnections()
	client := &http.Client{Transport: t, Timeout: 2 * time.Minute}
	for n := 0; ctx.Err() == nil; n++ {
		method, body := http.MethodGet, io.Reader(http.NoBody)
		if n%2 == c.name%2 { // a body that cannot be sent again, so no transport tries
			method, body = http.MethodPost, io.MultiReader(strings.NewReader("{}"))
		}
		r, err := http.NewRequest(method, "http://localhost/v1/tasks", body)
		if err == nil {
			r.Header.Set("Content-Type", "application/json")
			var res *http.Response
			if res, err = client.Do(r); err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if err == nil && res.StatusCode >= http.StatusInternalServerError {
					err = fmt.Errorf("answer %s", res.Status)
				}
			}
		}
		if err != nil {
			text := fmt.Sprintf("caller %d, request %d: %s: %v", c.name, n, method, err)
			c.failed.CompareAndSwap(nil, &text)
			return
		}
		c.answered.Add(1)
	}
}

// Three times the server restarts under 100 callers: no request is refused or broken.
func TestARestartBehindASocketFailsNoRequest(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a server starts four times under 100 callers")
	}
	t.Parallel()
	const callers, restarts = 100, 3
	_, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	h := newCellar(t, inventory)
	l := h.opened()
	srv := h.behind(l)
	all := make([]*caller, callers)
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for i := range all {
		all[i] = &caller{name: i, path: strings.TrimPrefix(h.url, "unix://")}
		working.Go(func() { all[i].run(ctx) }) // the first ones wait for a server that only begins
	}
	for n := range restarts {
		srv.await("server listens")
		was := h.sum(all)
		h.awaitMore(all, was+2*callers)
		began := time.Now()
		srv.cmd.Process.Signal(syscall.SIGTERM)
		<-srv.done
		srv = h.behind(l)
		h.awaitMore(all, h.sum(all)+2*callers)
		t.Logf("restart %d: answers again after %s", n+1, time.Since(began).Round(time.Millisecond))
	}
	cancel()
	working.Wait()
	for _, c := range all {
		if text := c.failed.Load(); text != nil {
			t.Error(*text)
		}
	}
	t.Logf("%d requests of %d callers over %d restarts", h.sum(all), callers, restarts)
}

func (h *house) sum(all []*caller) (n int64) {
	for _, c := range all {
		n += c.answered.Load()
	}
	return n
}

// awaitMore waits until so many requests are answered, or a caller has failed.
func (h *house) awaitMore(all []*caller, n int64) {
	h.t.Helper()
	late := h.late()
	for h.sum(all) < n {
		for _, c := range all {
			if text := c.failed.Load(); text != nil {
				h.t.Fatal(*text)
			}
		}
		select {
		case <-late:
			h.t.Fatalf("%d requests are answered, want %d", h.sum(all), n)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestASocketThatTheConfigurationDoesNotNameIsRefused(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	h := newCellar(t, inventory)
	l := h.opened()
	named := h.url
	h.url = freeSocket(t)
	h.config(nil)
	p := h.behind(l)
	<-p.done
	for _, want := range []string{"systemd has opened unix:" + strings.TrimPrefix(named, "unix://"),
		"server.listen does not name"} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("the server says:\n%s\nwant %q", p.log, want)
		}
	}
	h.url = named
	h.configure(map[string]any{"server": map[string]any{"listen": listenOn(named), "key": h.file("server.key"),
		"socket_group": "1"}})
	p = h.behind(l)
	<-p.done
	if want := "set SocketGroup in muster-server.socket"; !strings.Contains(p.log.String(), want) {
		t.Errorf("the server says:\n%s\nwant %q", p.log, want)
	}
}
