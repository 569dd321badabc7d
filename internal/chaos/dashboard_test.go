package chaos

import (
	"flag"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/testkit/promtest"
)

var picture = flag.String("chaos.dashboard", "", "file for an SVG of the dashboard as a real Prometheus saw the run")

// A watcher is a Prometheus that looks at all servers of a house; nil: none was asked for.
type watcher struct {
	prometheus *promtest.Prometheus
	since      time.Time
}

// watch starts the Prometheus. It reaches servers, which listen on unix sockets, by a port each.
func (h *house) watch(t *testing.T) *watcher {
	t.Helper()
	if *picture == "" {
		return nil
	}
	var targets []string
	for _, s := range h.servers {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		go forward(l, strings.TrimPrefix(s.url, "unix://"))
		targets = append(targets, l.Addr().String())
	}
	return &watcher{promtest.StartEvery(t, 2*time.Second, targets...), time.Now()}
}

// forward connects callers of a port to a unix socket, until the port is closed.
func forward(l net.Listener, socket string) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("unix", socket)
			if err != nil {
				return // the server is away
			}
			go func() {
				io.Copy(out, in)
				out.Close()
			}()
			io.Copy(in, out)
		}()
	}
}

// draw draws the dashboard.
func (w *watcher) draw(t *testing.T) {
	t.Helper()
	if w == nil {
		return
	}
	out, err := filepath.Abs(*picture)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", "./cmd/dashboard", "-prometheus", w.prometheus.URL(), "-out", out,
		"-for", time.Since(w.since).Round(time.Second).String())
	cmd.Dir = filepath.Join("..", "..", "tools")
	text, err := cmd.CombinedOutput()
	t.Logf("the dashboard is in %s\n%s", out, text)
	if err != nil {
		t.Errorf("the dashboard is not drawn: %v", err)
	}
}
