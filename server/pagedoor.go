package server

import (
	"net/http"
	"net/url"

	"muster/server/pages"
	"muster/server/pages/frame"
	"muster/server/web"
)

// loginPath is the page on which a browser begins a session.
const loginPath = "/login"

// newPages returns the pages, which ask the API behind the guard.
func (s *Server) newPages(api http.Handler, door guard) *frame.Frame {
	return pages.New(frame.Needs{API: api, Identify: door.identify, Stopping: s.site.stopping})
}

// letPage is let for the pages of browsers: it sends those without a name to the login.
func (s guard) letPage(x *web.Exchange, r *http.Request, p *frame.Frame) {
	h := x.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !frame.Free(r) {
		who, err := s.identify(r)
		if err != nil {
			s.door.out(r, err)
			s.noPage(x, r, err)
			return
		}
		x.Who = who
	}
	p.ServeHTTP(x, r)
}

// noPage answers a browser that may not see a page.
func (s guard) noPage(x *web.Exchange, r *http.Request, err error) {
	if web.StatusOf(err) == http.StatusUnauthorized && navigates(r) {
		http.Redirect(x, r, loginPath+"?to="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	web.WriteProblem(x, err)
}

// navigates reports whether a browser goes to an address for its user, as by a link: that reads
// only, so it may come from a page of another site, such as a chat.
func navigates(r *http.Request) bool {
	h := r.Header
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && h.Get("Origin") == "" &&
		(h.Get("Sec-Fetch-Mode") == "navigate" && h.Get("Sec-Fetch-Dest") == "document" ||
			h.Get("Sec-Fetch-Mode") == "")
}
