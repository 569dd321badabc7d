package apitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"muster/jobs"
)

// The names of a task and of a job of it.
const (
	ATask = "0wcy7y2fb2"
	AJob  = ATask + ":fw001"
)

// API is a pretended server. Its routes are patterns of http.ServeMux; a
// request for any other is a mistake of the client.
type API struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string // method and URI of each request
	body map[string]string
	Head http.Header // of the last request
}

// New starts a pretended server with these routes.
func New(t *testing.T, routes map[string]http.HandlerFunc) *API {
	t.Helper()
	mux := http.NewServeMux()
	for pattern, h := range routes {
		mux.HandleFunc(pattern, h)
	}
	// Nobody asks for these by themselves: they come with other questions.
	const pauses = "/v1/pauses"
	_, stands := routes["GET "+pauses]
	a := &API{body: map[string]string{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(text))
		if _, known := mux.Handler(r); r.URL.Path == pauses && !stands ||
			known == "" && strings.HasSuffix(r.URL.Path, "/course") ||
			known == "" && r.URL.Query().Get("event") == "order-doubted" {
			Answer(`{}`)(w, r)
			return
		}
		a.mu.Lock()
		a.seen = append(a.seen, r.Method+" "+r.URL.RequestURI())
		a.body[r.Method+" "+r.URL.Path] = string(text)
		a.Head = r.Header
		a.mu.Unlock()
		if _, pattern := mux.Handler(r); pattern == "" {
			t.Errorf("unexpected request: %s %s", r.Method, r.URL)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// Requests are the requests so far.
func (a *API) Requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.seen...)
}

// Sent reads the last body of a route into v.
func (a *API) Sent(t *testing.T, route string, v any) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := json.Unmarshal([]byte(a.body[route]), v); err != nil {
		t.Errorf("body of %s: %v: %q", route, err, a.body[route])
	}
}

// Answer answers with JSON.
func Answer(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text)
	}
}

// InTurn gives each request the next answer, and the last one for ever.
func InTurn(answers ...http.HandlerFunc) http.HandlerFunc {
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

// Deny answers with a problem.
func Deny(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
}

// HangUp reads a request and cuts the line without a word.
func HangUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// TaskJSON is a task on four hosts as the server describes it.
func TaskJSON(state jobs.TaskState, outcomes string) string {
	return fmt.Sprintf(`{"task": %q, "runbook": "exec", "on": "role=fw", "operator": "alice", "proven": false,
		"state": %q, "total": 4, "running": 0, "outcomes": {%s}, "zones": ["default"], "inventory": "v1",
		"submitted": "2026-11-21T10:00:00.000Z", "started": "2026-11-21T10:00:01.000Z", "finished": null,
		"seconds": 8.14, "ran": {"version": "1", "sha256": "abcd", "work": "ef", "arguments": [
			{"name": "cmd", "value": "uname -a"}, {"name": "password", "secret": true}]}}`, ATask, state, outcomes)
}

// WantParts looks for parts of a text.
func WantParts(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}
