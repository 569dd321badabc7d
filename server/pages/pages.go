package pages

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/a-h/templ"

	"muster/api"
	"muster/server/pages/assets"
	"muster/server/web"
)

// Needs has all that the pages work with.
type Needs struct {
	// API has all routes of the API, behind the guard.
	API http.Handler
	// Identify finds the sender of a request again: an open page must not outlive its session.
	Identify func(r *http.Request) (web.Caller, error)
	// Stopping is closed when the server stops.
	Stopping <-chan struct{}
}

// Pages answers the requests of browsers.
type Pages struct {
	needs Needs
	mux   *http.ServeMux
	lives lives
}

// New returns the pages.
func New(n Needs) *Pages {
	p := &Pages{needs: n, mux: http.NewServeMux()}
	for path, v := range views() {
		p.mux.HandleFunc("GET "+path, p.show(v))
	}
	for path, o := range orders() {
		p.mux.HandleFunc("GET "+path, p.ask(o))
		p.mux.HandleFunc("POST "+path, p.order(o))
	}
	p.mux.HandleFunc("GET /live", p.live)
	p.mux.HandleFunc("GET /live/once", p.once)
	p.mux.HandleFunc("GET /tasks/{task}/map", p.taskMap)
	p.mux.HandleFunc("GET /jobs/{job}/raw", p.rawLog)
	p.mux.HandleFunc("GET "+assets.Prefix, assets.Serve)
	return p
}

// views returns the pages that only show something, by their paths.
func views() map[string]view {
	return map[string]view{"/{$}": now, "/tasks": tasks, "/tasks/{task}": task, "/jobs/{job}": job}
}

// Has reports whether a request is one for the pages.
func (p *Pages) Has(r *http.Request) bool {
	_, pattern := p.mux.Handler(r)
	return pattern != ""
}

// Free reports whether a request needs nobody's name: it asks for a file that every page needs.
func Free(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, assets.Prefix) }

// Policy is the policy of every page for its browser: scripts and styles come from this server as
// files, and none from the text of a page.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types muster"

// ServeHTTP answers a request whose caller is known.
func (p *Pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", Policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	p.mux.ServeHTTP(w, r)
}

// A show is the content of a page.
type show struct {
	title string
	nav   string // the entry of the menu to which it belongs
	top   templ.Component
	parts []part
	// status is that of the answer; 0: 200.
	status int
	did    string // an order that was carried out just now
}

// A part is a region of a page. Live ones are sent again when they change.
type part struct {
	id   string
	live bool
	hold bool // it waits for a click before it changes: a list must not jump under the pointer
	body templ.Component
}

// A view makes the content of a page of what the API answers.
type view func(h house, r *http.Request) (show, error)

// A head is what all pages have beside their content.
type head struct {
	who  api.Whoami
	nav  []entry
	live string // the address of the stream; empty: the page does not change
	path string
}

// show returns the handler of a view.
func (p *Pages) show(v view) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := p.house(w, r)
		s, err := v(h, r)
		if to, live := r.Context().Value(liveKey{}).(*taken); live {
			to.show, to.err = s, err
			return
		}
		if err != nil {
			p.refuse(w, r, h, err)
			return
		}
		p.write(w, r, h, s)
	}
}

// write writes a page.
func (p *Pages) write(w http.ResponseWriter, r *http.Request, h house, s show) {
	d := head{nav: menu(s.nav), path: r.URL.RequestURI()}
	// A page without its caller's name is better than none: the API has let the caller in.
	_ = h.get("/v1/whoami", nil, &d.who)
	for _, one := range s.parts {
		if one.live {
			d.live = "/live?at=" + url.QueryEscape(d.path)
		}
	}
	s.did = wordOf(r.URL.Query().Get("did"))
	render(r.Context(), w, max(s.status, http.StatusOK), shell(s, d))
}

// refuse writes an error as a page.
func (p *Pages) refuse(w http.ResponseWriter, r *http.Request, h house, err error) {
	e := problemOf(err)
	p.write(w, r, h, show{title: e.Heading(), status: e.Status, parts: []part{
		{id: "problem", body: problemPart(e)}}})
}

// render writes a component as the answer. Nothing is sent before all of it is made.
func render(ctx context.Context, w http.ResponseWriter, status int, c templ.Component) {
	var b bytes.Buffer
	if err := c.Render(ctx, &b); err != nil {
		http.Error(w, "a mistake in muster: the page cannot be written", 500)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	// A browser that does not read its page has gone.
	_, _ = w.Write(b.Bytes())
}

// An entry is one of the menu.
type entry struct {
	name, path string
	here       bool
}

// menu returns the entries of the menu.
func menu(here string) []entry {
	list := []entry{{name: "Now", path: "/"}, {name: "Tasks", path: "/tasks"},
		{name: "Fleet", path: "/fleet"}, {name: "Run", path: "/run"}, {name: "Queue", path: "/queue"},
		{name: "Windows", path: "/windows"}, {name: "Schedules", path: "/schedules"},
		{name: "Runbooks", path: "/runbooks"}, {name: "History", path: "/history"},
		{name: "Nodes", path: "/nodes"}, {name: "Approvals", path: "/approvals"},
		{name: "Audit", path: "/audit"}}
	for i := range list {
		list[i].here = list[i].name == here
	}
	return list
}
