package frame

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"slices"
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

// A Frame answers the requests of browsers. The rooms of the pages give it their content.
type Frame struct {
	needs Needs
	mux   *http.ServeMux
	views map[string]bool // the patterns of pages that show something
	all   []string        // the addresses of Addresses
	hints []string        // of all rooms
	lives lives
}

// An Answer answers a request in another way than by a page.
type Answer func(p *Frame, w http.ResponseWriter, r *http.Request)

// A Content is what a room adds to the pages: by paths of its own.
type Content struct {
	Views   map[string]View     // pages that show something
	Orders  map[string]Planner  // pages of orders
	Words   map[string][]string // what {word} may be in the path of an order
	Hints   []string            // words with which a search begins that leads to an order
	Answers map[string]Answer   // by method and path
}

// NewFrame returns a frame with the content of some rooms.
func NewFrame(n Needs, rooms ...Content) *Frame {
	p := &Frame{needs: n, mux: http.NewServeMux(), views: map[string]bool{},
		lives: lives{places: newPlaces()}}
	for _, c := range rooms {
		p.hints = append(p.hints, c.Hints...)
		for path, v := range c.Views {
			p.views["GET "+path] = true
			p.all = append(p.all, path)
			p.mux.HandleFunc("GET "+path, p.show(v))
		}
		for path, o := range c.Orders {
			p.all = append(p.all, spelled(path, c.Words[path])...)
			p.mux.HandleFunc("GET "+path, p.ask(o))
			p.mux.HandleFunc("POST "+path, p.order(o))
		}
		for pattern, f := range c.Answers {
			if path, is := strings.CutPrefix(pattern, "GET "); is {
				p.all = append(p.all, path)
			}
			p.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { f(p, w, r) })
		}
	}
	p.mux.HandleFunc("GET /live", p.live)
	p.mux.HandleFunc("GET /live/once", p.once)
	p.mux.HandleFunc("GET "+assets.Prefix, assets.Serve)
	return p
}

// spelled returns the path of an order with each of its words.
func spelled(path string, words []string) []string {
	var out []string
	for _, word := range words {
		out = append(out, strings.Replace(path, "{word}", word, 1))
	}
	if !strings.Contains(path, "{word}") {
		out = []string{path}
	}
	return out
}

// Addresses lists the addresses that a person may open, as patterns: pages, orders by their words,
// files. The streams behind pages are not among them.
func (p *Frame) Addresses() []string {
	list := slices.Clone(p.all)
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], "{$}")
	}
	slices.Sort(list)
	return list
}

// Has reports whether a request is one for the pages.
func (p *Frame) Has(r *http.Request) bool {
	_, pattern := p.mux.Handler(r)
	return pattern != ""
}

// free reports whether a request needs nobody's name: it asks for a file that every page needs.
func free(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, assets.Prefix) }

// Through answers a request that the guard lets in. The files that every page needs are for
// everybody, also for the browser of somebody whose session has ended.
func (p *Frame) Through(x *web.Exchange, r *http.Request,
	let func(*web.Exchange, *http.Request, http.Handler)) {
	if !free(r) {
		let(x, r, p)
		return
	}
	h := x.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	p.ServeHTTP(x, r)
}

// Policy is the policy of every page for its browser: scripts and styles come from this server as
// files, and none from the text of a page.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
	"connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types muster"

// ServeHTTP answers a request whose caller is known.
func (p *Frame) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", Policy)
	// Without a referrer a form has the origin null, which the guard refuses.
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	p.mux.ServeHTTP(w, r)
}

// A Show is the content of a page.
type Show struct {
	Title string
	Nav   string // the entry of the menu to which it belongs
	Top   templ.Component
	Parts []Part
	// Light: the view knows which parts are quickly known, and makes only those if it is asked to.
	Light bool
	// Turn: when it changes, the whole page has changed, and an open one is looked at at once.
	Turn string
	// status is that of the answer; 0: 200.
	Status int
	did    string // an order that was carried out just now
}

// A Part is a region of a page. Live ones are sent again when they change.
type Part struct {
	ID   string
	Live bool
	Hold bool // it waits for a click before it changes: a list must not jump under the pointer
	Body templ.Component
}

// A View makes the content of a page of what the API answers.
type View func(h House, r *http.Request) (Show, error)

// A head is what all pages have beside their content.
type head struct {
	who  api.Whoami
	nav  []entry
	hint []string
	live string // the address of the stream; empty: the page does not change
	path string
}

// Show returns the handler of a view.
func (p *Frame) show(v View) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := p.House(w, r)
		s, err := v(h, r)
		if to, live := r.Context().Value(liveKey{}).(*taken); live {
			to.show, to.err = s, err
			return
		}
		if err != nil {
			p.Refuse(w, r, h, err)
			return
		}
		p.Write(w, r, h, s)
	}
}

// write writes a page.
func (p *Frame) Write(w http.ResponseWriter, r *http.Request, h House, s Show) {
	d := head{nav: menu(s.Nav), hint: p.hints, path: r.URL.RequestURI()}
	// A page without its caller's name is better than none: the API has let the caller in.
	_ = h.Get("/v1/whoami", nil, &d.who)
	for _, one := range s.Parts {
		if one.Live {
			d.live = "/live?at=" + url.QueryEscape(d.path)
		}
	}
	s.did = wordOf(r.URL.Query().Get("did"))
	render(r.Context(), w, max(s.Status, http.StatusOK), shell(s, d))
}

// refuse writes an error as a page.
func (p *Frame) Refuse(w http.ResponseWriter, r *http.Request, h House, err error) {
	e := ProblemOf(err)
	p.Write(w, r, h, Show{Title: e.Heading(), Status: e.Status, Parts: []Part{
		{ID: "problem", Body: ProblemPart(e)}}})
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
		{name: "Rollouts", path: "/rollouts"}, {name: "Lanes", path: "/lanes"},
		{name: "Windows", path: "/windows"}, {name: "Schedules", path: "/schedules"},
		{name: "Runbooks", path: "/runbooks"}, {name: "DNSSEC", path: "/dnssec"},
		{name: "History", path: "/history"},
		{name: "Nodes", path: "/nodes"}, {name: "Approvals", path: "/approvals"},
		{name: "Events", path: "/events"}, {name: "Notices", path: "/notices"},
		{name: "Audit", path: "/audit"}}
	for i := range list {
		list[i].here = list[i].name == here
	}
	return list
}
