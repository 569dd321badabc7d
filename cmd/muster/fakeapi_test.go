package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/jobs"
)

const (
	aTask = "0wcy7y2fb2"
	aJob  = aTask + ":fw001"
)

// fakeAPI is a pretended server. Its routes are patterns of http.ServeMux; a
// request for any other is a mistake of the client.
type fakeAPI struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string // method and URI of each request
	body map[string]string
	head http.Header // of the last request
}

func newFakeAPI(t *testing.T, routes map[string]http.HandlerFunc) *fakeAPI {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, h := range routes {
		mux.HandleFunc(pattern, h)
	}
	// Nobody asks for it by itself: it comes with other questions.
	const pauses = "/v1/pauses"
	_, stands := routes["GET "+pauses]
	a := &fakeAPI{body: map[string]string{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(text))
		if _, known := mux.Handler(r); r.URL.Path == pauses && !stands ||
			known == "" && strings.HasSuffix(r.URL.Path, "/course") {
			answer(`{}`)(w, r)
			return
		}
		a.mu.Lock()
		a.seen = append(a.seen, r.Method+" "+r.URL.RequestURI())
		a.body[r.Method+" "+r.URL.Path] = string(text)
		a.head = r.Header
		a.mu.Unlock()
		if _, pattern := mux.Handler(r); pattern == "" {
			t.Errorf("unexpected request: %s %s", r.Method, r.URL)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// requests are the requests so far.
func (a *fakeAPI) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.seen...)
}

// sent reads the last body of a route into v.
func (a *fakeAPI) sent(t *testing.T, route string, v any) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := json.Unmarshal([]byte(a.body[route]), v); err != nil {
		t.Errorf("body of %s: %v: %q", route, err, a.body[route])
	}
}

// answer answers with JSON.
func answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text)
	}
}

// inTurn gives each request the next answer, and the last one for ever.
func inTurn(answers ...http.HandlerFunc) http.HandlerFunc {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := answers[0]
		if len(answers) > 1 {
			answers = answers[1:]
		}
		mu.Unlock()
		h(w, r)
	}
}

// deny answers with a problem.
func deny(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

// hangUp reads a request and cuts the line without a word.
func hangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// taskJSON is a task on four hosts as the server describes it.
func taskJSON(state jobs.TaskState, outcomes string) string {
	return fmt.Sprintf(`{"task": %q, "runbook": "exec", "on": "role=fw", "operator": "alice", "proven": false,
		"state": %q, "total": 4, "running": 0, "outcomes": {%s}, "zones": ["default"], "inventory": "v1",
		"submitted": "2026-11-21T10:00:00.000Z", "started": "2026-11-21T10:00:01.000Z", "finished": null,
		"seconds": 8.14, "ran": {"version": "1", "sha256": "abcd", "work": "ef", "arguments": [
			{"name": "cmd", "value": "uname -a"}, {"name": "password", "secret": true}]}}`, aTask, state, outcomes)
}

// muster runs a command against a server, as main does.
func muster(t *testing.T, url string, args ...string) (code int, out, words string) {
	t.Helper()
	return musterWith(t.Context(), url, args...)
}

func musterWith(ctx context.Context, url string, args ...string) (code int, out, words string) {
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	if url != "" {
		args = append(args, "--server", url)
	}
	root.SetArgs(args)
	code, err := execute(ctx, root)
	if err != nil {
		fmt.Fprintln(&stderr, err)
	}
	return code, stdout.String(), stderr.String()
}

// newTestClient is a client that loses its patience soon.
func newTestClient(t *testing.T, url string) *client {
	t.Helper()
	c, err := newClient(url, "")
	if err != nil {
		t.Fatal(err)
	}
	c.patience = patience{first: time.Millisecond, most: 2 * time.Millisecond, whole: 30 * time.Second}
	t.Cleanup(c.close)
	return c
}

// newTestSession is a session that writes to the buffers it returns.
func newTestSession(c *client) (s *session, out, words *bytes.Buffer) {
	out, words = &bytes.Buffer{}, &bytes.Buffer{}
	return &session{c, &screen{out: out, err: words, width: func() int { return 80 },
		height: func() int { return 24 }, now: time.Now}}, out, words
}

// wantParts looks for parts of a text.
func wantParts(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}
