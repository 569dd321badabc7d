package server

import (
	"net/http"

	"muster/server/pages"
	"muster/server/pages/frame"
	"muster/server/web"
)

// newPages returns the pages, which ask the API behind the guard.
func (s *Server) newPages(api http.Handler, door guard) *frame.Frame {
	return pages.New(frame.Needs{API: api, Identify: door.identify, Stopping: s.site.stopping})
}

// letPage is let for the pages of browsers. The files that every page needs are for everybody, also
// for the browser of somebody whose session has ended.
func (s guard) letPage(x *web.Exchange, r *http.Request, p *frame.Frame) {
	if !frame.Free(r) {
		s.let(x, r, p)
		return
	}
	h := x.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	p.ServeHTTP(x, r)
}
