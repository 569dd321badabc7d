package web

import (
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// NoRoute answers where nothing is, or not by this method.
func NoRoute(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	h, _ := mux.Handler(r)
	probe := &muted{header: http.Header{}}
	h.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		allow := probe.header.Get("Allow")
		WriteProblem(w, huma.ErrorWithHeaders(huma.Error405MethodNotAllowed(fmt.Sprintf(
			"%s takes %s", Clip(r.URL.Path), allow)), http.Header{"Allow": {allow}}))
		return
	}
	WriteProblem(w, huma.Error404NotFound(fmt.Sprintf(
		"there is no %s: /openapi.json lists what there is", Clip(r.URL.Path))))
}

// muted hears what a handler says and tells nobody.
type muted struct {
	header http.Header
	status int
}

// Header is the head of the answer.
func (m *muted) Header() http.Header { return m.header }

// WriteHeader notes the status.
func (m *muted) WriteHeader(status int) { m.status = status }

// Write drops the answer.
func (m *muted) Write(b []byte) (int, error) { return len(b), nil }
