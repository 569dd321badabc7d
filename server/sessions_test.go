package server_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/api"
	"muster/server"
	"muster/testkit/redistest"
)

// sessionRoutes are those that everybody may call who may do anything.
const sessionRoutes = `*POST /v1/login/links
*POST /v1/logout
*GET /v1/sessions
*DELETE /v1/sessions/{session}
`

// browser is somebody's browser, which keeps cookies and follows redirects.
type browser struct {
	t    *testing.T
	http *http.Client
	base string
}

// housed starts a server with a socket and a port, and returns it with a browser that nobody knows.
func housed(t *testing.T, with setup) (*world, *browser) {
	t.Helper()
	with.listen = "unix:" + shortPath(t) + ",127.0.0.1:0"
	w := start(t, with)
	place, port, _ := strings.Cut(w.server.Addr(), ",")
	w.dial(place)
	b := &browser{t: t, base: "http://" + port, http: &http.Client{Transport: &http.Transport{}}}
	if with.tls[0] != "" {
		b.base = "https://" + port
	}
	b.http.Jar, _ = cookiejar.New(nil)
	t.Cleanup(b.http.CloseIdleConnections)
	return w, b
}

// link asks for a link that logs a browser in.
func (w *world) link(header http.Header) api.LoginLink {
	w.t.Helper()
	res, text := w.raw("POST", "/v1/login/links", nil, header)
	var l api.LoginLink
	if err := json.Unmarshal(text, &l); err != nil || res.StatusCode != http.StatusCreated {
		w.t.Fatalf("a link: %s %s", res.Status, text)
	}
	return l
}

// send makes a request as a browser does, for a page of this server, and returns status and text.
func (b *browser) send(method, at string, form url.Values, more ...string) (*http.Response, string) {
	b.t.Helper()
	if strings.HasPrefix(at, "/") {
		at = b.base + at
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, at, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	h := req.Header
	h.Set("Accept", "text/html,*/*")
	h.Set("Sec-Fetch-Site", "same-origin")
	h.Set("Sec-Fetch-Mode", "navigate")
	h.Set("Sec-Fetch-Dest", "document")
	if method == http.MethodPost {
		h.Set("Origin", b.base)
		h.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
		if more[i+1] == "" {
			h.Del(more[i])
		}
	}
	res, err := b.http.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res, string(text)
}

// fields are the hidden fields of the form in a page.
func fields(page string) url.Values {
	out := url.Values{}
	for _, m := range regexp.MustCompile(`name="([^"]*)" value="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		out.Set(m[1], m[2])
	}
	return out
}

// enter opens a link and presses its button.
func (b *browser) enter(link string) (*http.Response, string) {
	b.t.Helper()
	_, page := b.send("GET", link, nil)
	return b.send("POST", "/login/once", fields(page))
}

// who returns who the server takes a browser for; empty: nobody.
func (b *browser) who() string {
	b.t.Helper()
	_, text := b.send("GET", "/v1/whoami", nil, "Accept", "application/json")
	var w api.Whoami
	_ = json.Unmarshal([]byte(text), &w)
	return w.Principal
}

// cookie returns the cookie of the session.
func (b *browser) cookie() *http.Cookie {
	b.t.Helper()
	u, _ := url.Parse(b.base)
	list := b.http.Jar.Cookies(u)
	if len(list) != 1 {
		b.t.Fatalf("%d cookies", len(list))
	}
	return list[0]
}

func TestALinkLogsABrowserInOnce(t *testing.T) {
	t.Parallel()
	w, b := housed(t, setup{})
	me := localName(t)
	if res, page := b.send("GET", "/login", nil); res.StatusCode != 200 ||
		!strings.Contains(page, "muster login --browser") {
		t.Fatalf("the page of the login: %s %s", res.Status, page)
	}
	l := w.link(nil)
	if l.Principal != me || !strings.HasPrefix(l.URL, b.base+"/login/once/mss_") ||
		time.Until(l.Expires.Time) > time.Minute {
		t.Fatalf("the link: %+v", l)
	}
	for range 3 { // a preview, a prefetch, and the person
		res, page := b.send("GET", l.URL, nil)
		if res.StatusCode != 200 || !strings.Contains(page, "Log in as "+me) || len(res.Cookies()) > 0 {
			t.Fatalf("the page of the link: %s %s", res.Status, page)
		}
		policy := res.Header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "script") ||
			!strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(page, "<script") ||
			res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("headers of the page: %v", res.Header)
		}
	}
	if got := b.who(); got != "" {
		t.Errorf("before the button it is %s", got)
	}
	res, page := b.enter(l.URL)
	if res.StatusCode != 200 || !strings.Contains(page, me) || !strings.Contains(page, "Log out") {
		t.Fatalf("the login: %s %s", res.Status, page)
	}
	if got := b.who(); got != me {
		t.Errorf("the browser is %q", got)
	}
	other := &browser{t: t, base: b.base, http: &http.Client{Transport: b.http.Transport}}
	other.http.Jar, _ = cookiejar.New(nil)
	if res, page := other.send("POST", "/login/once", url.Values{"secret": {l.URL[strings.LastIndex(l.URL,
		"/")+1:]}}); res.StatusCode != 403 || !strings.Contains(page, "works once") || other.who() != "" {
		t.Errorf("the link a second time: %s %s", res.Status, page)
	}
	if res, _ := other.send("GET", l.URL, nil); res.StatusCode != 403 {
		t.Errorf("its page a second time: %s", res.Status)
	}
	var list api.SessionList
	w.call("GET", "/v1/sessions", nil, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].Owner != me || list.Sessions[0].Kind != "browser" ||
		list.Sessions[0].Proof != "socket" || list.Sessions[0].Wrong != "" {
		t.Fatalf("the sessions: %+v", list)
	}
	secret := b.cookie().Value
	if res, _ := b.send("POST", "/logout", nil); res.StatusCode != 200 || b.who() != "" {
		t.Errorf("after the logout: %s, %s", res.Status, b.who())
	}
	u, _ := url.Parse(b.base)
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "muster-" + u.Port(), Value: secret}})
	if got := b.who(); got != "" {
		t.Errorf("with the cookie of the ended session it is %s", got)
	}
	if log := w.log.String(); strings.Contains(log, secret) ||
		strings.Contains(log, l.URL[strings.LastIndex(l.URL, "/"):]) {
		t.Error("a secret is in the log")
	}
	w.call("GET", "/v1/sessions", nil, &list)
	if len(list.Sessions) != 0 {
		t.Errorf("the sessions after the logout: %+v", list)
	}
}

// A page of another origin gets nothing with the cookie, whatever it sends, and a request that does
// not say where it comes from changes nothing.
func TestAPageOfAnotherOriginGetsNothingWithACookie(t *testing.T) {
	t.Parallel()
	w, b := housed(t, setup{})
	b.enter(w.link(nil).URL)
	api := "application/json"
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"its own page reads":  {"GET", "/v1/tasks", []string{"Accept", api, "Sec-Fetch-Mode", "cors"}, 200},
		"a typed address":     {"GET", "/v1/tasks", []string{"Accept", api, "Sec-Fetch-Site", "none"}, 200},
		"its own page orders": {"POST", "/v1/freezes", []string{"Content-Type", api}, 400},
		"another site reads": {"GET", "/v1/tasks", []string{"Accept", api, "Sec-Fetch-Site",
			"cross-site"}, 403},
		"another port reads": {"GET", "/v1/tasks", []string{"Accept", api, "Sec-Fetch-Site",
			"same-site"}, 403},
		"another origin reads": {"GET", "/v1/tasks", []string{"Accept", api, "Origin",
			"https://evil.example"}, 403},
		"no origin at all reads": {"GET", "/v1/tasks", []string{"Accept", api, "Origin", "null"}, 403},
		"another site orders":    {"POST", "/v1/halt", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"another origin orders": {"POST", "/v1/halt", []string{"Origin", "https://evil.example",
			"Sec-Fetch-Site", ""}, 403},
		"another scheme orders": {"POST", "/v1/halt", []string{"Origin", "https://" + b.base[7:],
			"Sec-Fetch-Site", ""}, 403},
		"nobody orders":  {"POST", "/v1/halt", []string{"Origin", "", "Sec-Fetch-Site", ""}, 403},
		"a foreign name": {"GET", "/v1/tasks", []string{"Accept", api, "Host", "evil.example"}, 403},
		"another site logs out": {"POST", "/logout", []string{"Origin", "https://evil.example",
			"Sec-Fetch-Site", "cross-site"}, 403},
		"another site logs in": {"POST", "/login/once", []string{"Origin", "https://evil.example",
			"Sec-Fetch-Site", "cross-site"}, 403},
		"a login of nobody": {"POST", "/login/once", []string{"Origin", "", "Sec-Fetch-Site", ""}, 403},
		"the login within a page": {"GET", "/login", []string{"Sec-Fetch-Site", "cross-site",
			"Sec-Fetch-Dest", "iframe"}, 403},
		"the login by a script": {"GET", "/login", []string{"Sec-Fetch-Site", "cross-site",
			"Sec-Fetch-Mode", "cors"}, 403},
		"the login from a message":    {"GET", "/login", []string{"Sec-Fetch-Site", "cross-site"}, 200},
		"a page from a message":       {"GET", "/tasks", []string{"Sec-Fetch-Site", "cross-site"}, 200}, // the login
		"the API opened by a message": {"GET", "/v1/tasks", []string{"Sec-Fetch-Site", "cross-site"}, 403},
	} {
		if c.headers[len(c.headers)-2] == "Host" {
			continue // below
		}
		if res, text := b.send(c.method, c.path, nil, c.headers...); res.StatusCode != c.want {
			t.Errorf("%s: %s %s, want %d", name, res.Status, text, c.want)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", b.base+"/v1/tasks", nil)
	req.Host = "evil.example"
	req.AddCookie(b.cookie())
	res, err := b.http.Do(req)
	if err != nil || res.StatusCode != 403 {
		t.Errorf("under a foreign name: %v %v", res, err)
	}
	res.Body.Close()
	if b.who() == "" {
		t.Error("the session has ended by that")
	}
	// A link in a message reaches the page after the login page has asked for it again.
	res, page := b.send("GET", "/tasks?x=1", nil, "Sec-Fetch-Site", "cross-site")
	if res.StatusCode != 200 || !strings.Contains(page, `content="0;url=/tasks?x=1"`) {
		t.Errorf("a page from a message: %s %s", res.Status, page)
	}
	for _, next := range []string{"//evil.example", "https://evil.example", `/\evil.example`,
		"javascript:alert(1)", "/a\tb"} {
		if _, page := b.send("GET", "/login?next="+url.QueryEscape(next), nil, "Sec-Fetch-Site",
			"cross-site"); strings.Contains(page, "evil") || strings.Contains(page, "alert") ||
			strings.Contains(page, `href="/a`) {
			t.Errorf("%q leads away: %s", next, page)
		}
	}
}

// Over TLS the cookie is one that only this host gets, and only over TLS. Any other name of a cookie
// proves nobody, and so does a session that was begun without TLS.
func TestACookieOfTLSIsOfThisHostOnly(t *testing.T) {
	t.Parallel()
	cert, key, pool := selfSigned(t)
	w, b := housed(t, setup{tls: [3]string{cert, key, ""}})
	b.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	var p problem
	if res := w.call("POST", "/v1/login/links", nil, &p); res.StatusCode != 409 ||
		!strings.Contains(p.words(), "server.url") {
		t.Fatalf("a link of a server without a name: %s %s", res.Status, p.words())
	}
	w, b = housed(t, setup{tls: [3]string{cert, key, ""}, url: "https://muster.example/"})
	b.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	l := w.link(nil)
	path, is := strings.CutPrefix(l.URL, "https://muster.example/login/")
	if !is {
		t.Fatalf("the link %s", l.URL)
	}
	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, page := b.enter(b.base + "/login/" + path)
	list := res.Cookies()
	if len(list) != 1 {
		t.Fatalf("the login: %s %s", res.Status, page)
	}
	c := list[0]
	if c.Name != "__Host-muster" || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" ||
		c.SameSite != http.SameSiteStrictMode || c.Expires.Before(time.Now()) {
		t.Errorf("the cookie: %+v", c)
	}
	if b.who() != localName(t) {
		t.Fatal("the browser is not logged in")
	}
	u, _ := url.Parse(b.base)
	for _, name := range []string{"muster-" + u.Port(), "muster-", "__Secure-muster", "muster"} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", b.base+"/v1/whoami", nil)
		req.AddCookie(&http.Cookie{Name: name, Value: c.Value})
		res, err := (&http.Client{Transport: b.http.Transport}).Do(req)
		if err != nil || res.StatusCode != 401 {
			t.Errorf("by the name %s: %v %v", name, res, err)
			continue
		}
		res.Body.Close()
	}
}

// A session that was begun without TLS does not hold over TLS, and the other way round.
func TestASessionStaysOnItsSideOfTLS(t *testing.T) {
	t.Parallel()
	_, cfg := redistest.StartMini(t)
	cert, key, pool := selfSigned(t)
	plain, p := housed(t, setup{redis: &cfg})
	_, s := housed(t, setup{redis: &cfg, tls: [3]string{cert, key, ""}})
	s.http.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	p.enter(plain.link(nil).URL)
	u, _ := url.Parse(s.base)
	s.http.Jar.SetCookies(u, []*http.Cookie{{Name: "__Host-muster", Value: p.cookie().Value, Path: "/",
		Secure: true}})
	if res, text := s.send("GET", "/v1/whoami", nil, "Accept", "x"); res.StatusCode != 401 ||
		!strings.Contains(text, "without TLS") {
		t.Errorf("a session of a plain port over TLS: %s %s", res.Status, text)
	}
}

func TestASessionEnds(t *testing.T) {
	t.Parallel()
	var at atomic.Int64
	at.Store(time.Now().UnixNano())
	pass := func(d time.Duration) { at.Add(int64(d)) }
	w, b := housed(t, setup{now: func() time.Time { return time.Unix(0, at.Load()) }})
	b.enter(w.link(nil).URL)
	pass(7 * time.Hour)
	if b.who() == "" {
		t.Fatal("it has ended although it was used")
	}
	pass(4*time.Hour + 59*time.Minute)
	if b.who() == "" {
		t.Fatal("it has ended before its time")
	}
	pass(time.Minute)
	if b.who() != "" {
		t.Error("it has not ended after 12 hours")
	}
	b.enter(w.link(nil).URL)
	if res, _ := w.raw("GET", "/v1/tasks", nil, bearing(b.cookie().Value)); res.StatusCode != 401 {
		t.Errorf("the secret of a cookie as a token: %s", res.Status)
	}
	pass(8 * time.Hour)
	if b.who() != "" {
		t.Error("it has not ended although nobody has used it for 8 hours")
	}
	l := w.link(nil)
	pass(time.Minute)
	if res, page := b.enter(l.URL); res.StatusCode != 403 || !strings.Contains(page, "for a minute") {
		t.Errorf("a link after a minute: %s %s", res.Status, page)
	}
	var list api.SessionList
	w.link(nil) // sweeps
	w.call("GET", "/v1/sessions", nil, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].Kind != "link" {
		t.Errorf("what has ended stays: %+v", list)
	}
}

// A session is never more than what it was begun by, and ends with it.
func TestASessionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	w, b := housed(t, setup{})
	var a api.TokenAnswer
	w.call("POST", "/v1/tokens", api.TokenRequest{Name: "laptop", Owner: "user:carol",
		Scope: &api.TokenScope{Verbs: []string{"see"}}}, &a)
	b.enter(w.link(bearing(a.Token)).URL)
	if got := b.who(); got != "user:carol" {
		t.Fatalf("the browser is %q", got)
	}
	if res, _ := b.send("GET", "/v1/tasks", nil, "Accept", "x"); res.StatusCode != 200 {
		t.Errorf("it sees: %s", res.Status)
	}
	if res, _ := b.send("GET", "/v1/audit", nil, "Accept", "x"); res.StatusCode != 403 {
		t.Errorf("Carol's session has more than its token: %s", res.Status)
	}
	if res, text := b.send("POST", "/v1/login/links", nil, "Accept", "x"); res.StatusCode != 403 {
		t.Errorf("a session of a browser makes links: %s %s", res.Status, text)
	}
	w.call("DELETE", "/v1/tokens/laptop", nil, nil)
	if res, text := b.send("GET", "/v1/tasks", nil, "Accept", "x"); res.StatusCode != 401 ||
		!strings.Contains(text, "ended with the token") {
		t.Errorf("after the token: %s %s", res.Status, text)
	}
}

// Everybody sees and ends the own sessions only; an admin ends those of others.
func TestSessionsAreListedAndEnded(t *testing.T) {
	t.Parallel()
	w, b := housed(t, setup{})
	alice, bob := w.token("alice"), w.token("bob")
	b.enter(w.link(bearing(alice)).URL)
	list := func(token string) (l api.SessionList) {
		_, text := w.raw("GET", "/v1/sessions", nil, bearing(token))
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	if l := list(bob); len(l.Sessions) != 0 {
		t.Errorf("Bob sees %+v", l)
	}
	l := list(alice)
	if len(l.Sessions) != 1 || l.Sessions[0].Used.IsZero() {
		t.Fatalf("Alice sees %+v", l)
	}
	id := l.Sessions[0].ID
	if res, _ := w.raw("DELETE", "/v1/sessions/"+id, nil, bearing(bob)); res.StatusCode != 404 ||
		b.who() != "user:alice" {
		t.Errorf("Bob ends it: %s", res.Status)
	}
	if res := w.call("DELETE", "/v1/sessions/"+id, nil, nil); res.StatusCode != 204 || b.who() != "" {
		t.Errorf("an admin ends it: %s", res.Status)
	}
	if res := w.call("DELETE", "/v1/sessions/"+id, nil, nil); res.StatusCode != 404 {
		t.Errorf("again: %s", res.Status)
	}
}

// A browser begins a session of its own: a cookie that somebody has planted is not taken over, and
// the session of before ends.
func TestALoginTakesNoPlantedCookieOver(t *testing.T) {
	t.Parallel()
	w, b := housed(t, setup{})
	u, _ := url.Parse(b.base)
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "muster-" + u.Port(), Path: "/",
		Value: "mss_aaaaaaaaaaaa_" + strings.Repeat("a", 43)}})
	b.enter(w.link(nil).URL)
	first := b.cookie().Value
	if strings.Contains(first, "aaaaaaaaaaaa") || b.who() == "" {
		t.Errorf("the planted cookie stays: %s", first)
	}
	b.enter(w.link(nil).URL)
	second := b.cookie().Value
	if first == second || b.who() == "" {
		t.Error("a second login has the session of the first")
	}
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "muster-" + u.Port(), Path: "/", Value: first}})
	if b.who() != "" {
		t.Error("the first session lives on")
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", b.base+"/v1/whoami", nil)
	req.Header.Set("Cookie", "muster-"+u.Port()+"="+second+"; muster-"+u.Port()+"="+first)
	plain := &http.Client{Transport: b.http.Transport}
	if res, err := plain.Do(req); err != nil || res.StatusCode != 401 {
		t.Errorf("two cookies: %v %v", res, err)
	} else {
		res.Body.Close()
	}
}

// A server without the key of servers, or without a port, says so.
func TestWithoutAPortOrAKeyNoBrowserLogsIn(t *testing.T) {
	t.Parallel()
	var p problem
	w := start(t, setup{})
	if res := w.call("POST", "/v1/login/links", nil, &p); res.StatusCode != 409 ||
		!strings.Contains(p.words(), "server.listen") {
		t.Errorf("without a port: %s %s", res.Status, p.words())
	}
	k, _ := housed(t, setup{more: func(d *server.Deps) { d.ServerKeys = nil }})
	if res := k.call("POST", "/v1/login/links", nil, &p); res.StatusCode != 409 ||
		!strings.Contains(p.words(), "muster init") {
		t.Errorf("without a key: %s %s", res.Status, p.words())
	}
}
