package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/porttest"
)

// This file lets a page of another origin try to use a server, in a real browser (issue 16, show 2).

//go:embed testdata/foreign.html
var foreignPage string

// site is the web server of an attacker. Some paths show the page, and all others lead to upstream,
// as they do once the attacker lets the name of the site mean this machine (DNS rebinding).
type site struct {
	*httptest.Server
	results chan []string
	asked   chan string
}

func newSite(t *testing.T, upstream http.Handler) *site {
	t.Helper()
	s := &site{results: make(chan []string, 1), asked: make(chan string, 1000)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/foreign.html":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, foreignPage)
		case "/results":
			var got []string
			_ = json.NewDecoder(r.Body).Decode(&got) // an empty list fails the test as well
			s.results <- got
		default:
			s.asked <- r.Method + " " + r.URL.Path
			upstream.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// through passes requests on as they are, as `ssh -L` does.
func through(network, address string) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(&url.URL{Scheme: "http", Host: "upstream"})
			p.Out.Host = p.In.Host
		},
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}},
	}
}

// open lets everybody in, for the proof that the page would notice.
var open = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{"Origin": r.Header.Get("Origin"), "Headers": "*", "Methods": "*",
		"Credentials": "true"} {
		w.Header().Set("Access-Control-Allow-"+name, value)
	}
	if r.Header.Get("Accept") == "text/event-stream" {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	_, _ = io.WriteString(w, "/* let in */")
})

// visit opens the page of a site under a name, and returns what it got at some places.
func (s *site) visit(t *testing.T, browser, name string, places ...string) []string {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + name + ":" + port
	for i, p := range places {
		places[i] = strings.Replace(p, "itself", at, 1)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--host-resolver-rules=MAP *.test 127.0.0.1", "--remote-debugging-pipe",
		at+"/foreign.html?"+url.Values{"at": places}.Encode())
	// The browser stays as long as it can read descriptor 3.
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	cmd.ExtraFiles = []*os.File{in, out}
	var said strings.Builder
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	select {
	case got := <-s.results:
		return got
	case <-ctx.Done():
		t.Fatalf("the page does not end; the browser says:\n%s", &said)
	}
	return nil
}

func TestAForeignPageGetsNothing(t *testing.T) {
	t.Parallel()
	browser := findBrowser(t)
	f, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	h := newCellar(t, inventory)
	tcp := porttest.Addr(t)
	h.configure(map[string]any{"server": map[string]any{"listen": []string{listenOn(h.url), tcp}}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	socket := through("unix", strings.TrimPrefix(h.url, "unix://"))
	bridge := httptest.NewServer(socket)
	defer bridge.Close()
	_, port, _ := net.SplitHostPort(tcp)
	places := []string{"http://" + tcp, "http://localhost:" + port, bridge.URL,
		strings.Replace(bridge.URL, "127.0.0.1", "localhost", 1)}

	control := newSite(t, open)
	got := control.visit(t, browser, "evil.test", "itself", strings.Replace(control.URL, "127.0.0.1", "localhost", 1))
	for _, want := range []string{"fetch /v1/tasks", "frame /metrics", "POST text/plain cors", "form text/plain",
		"events", "of no origin", "script /v1/hosts"} {
		if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, want) }) {
			t.Errorf("a page that is let in gets nothing by %s: %q", want, got)
		}
	}
	for _, c := range []struct {
		what, name string
		site       *site
		places     []string
	}{
		{"a page of another site", "evil.test", newSite(t, http.NotFoundHandler()), slices.Clone(places)},
		{"a page of another port", "127.0.0.1", newSite(t, http.NotFoundHandler()), slices.Clone(places)},
		{"a name that means the port now", "rebound.test", newSite(t, through("tcp", tcp)), []string{"itself"}},
		{"a name that means the way to the socket now", "rebound.test", newSite(t, socket), []string{"itself"}},
	} {
		for _, g := range c.site.visit(t, browser, c.name, c.places...) {
			t.Errorf("%s gets %s", c.what, g)
		}
		if c.places[0] == "itself" && len(c.site.asked) < 20 {
			t.Errorf("%s has asked only %d times", c.what, len(c.site.asked))
		}
	}
	h.untouched(f)
}

// untouched checks that nobody has ordered anything, and that pages were refused.
func (h *house) untouched(f *fakefleet.Fleet) {
	h.t.Helper()
	var list []jobs.TaskInfo
	if h.query(&list, "tasks"); len(list) > 0 || len(f.Log()) > 0 {
		h.t.Errorf("there are tasks: %+v; the hosts have run %v", list, f.Log())
	}
	res, err := h.get("/metrics")
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || strings.Contains(string(text), `muster_logins_refused_total{reason="foreign_page"} 0`) {
		h.t.Errorf("no page was refused: %v", err)
	}
}

// findBrowser returns a browser without a screen.
func findBrowser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium-headless-shell", "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if _, err := os.Stat("/etc/debian_version"); err == nil && os.Getuid() == 0 {
		t.Fatal("there is no chromium-headless-shell: run `make test`, which installs it")
	}
	t.Skip("there is no chromium-headless-shell on this machine")
	return ""
}
