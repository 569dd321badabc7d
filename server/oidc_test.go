package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"muster/api"
	"muster/server"
	"muster/server/idp"
	"muster/testkit/oidctest"
)

// providing starts a server that asks a provider, with a browser. The access file has grants for
// group:ops and for the subject carla.
func providing(t *testing.T, at *oidctest.Provider) (*world, *browser) {
	t.Helper()
	policy := policyOf(t, "who:\n  - {group: group:ops, roles: [operator]}\n"+
		"  - {principal: 'oidc:"+at.URL+"#carla', roles: [viewer]}\n"+
		"  - {principal: "+localName(t)+", roles: [admin]}\n")
	w, b := housed(t, setup{url: "http://127.0.0.1:1", conf: server.Config{OIDC: idp.Config{
		Issuer: at.URL, ClientID: oidctest.ClientID, Device: true, Groups: []string{"NOC=group:ops", "Idle=group:idle"},
		Secret: func() (string, error) { return oidctest.Secret, nil }}},
		more: func(d *server.Deps) { d.Policy = policy }})
	b.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return w, b
}

// leads returns where a page sends the browser by itself.
func leads(t *testing.T, page string) string {
	t.Helper()
	m := regexp.MustCompile(`http-equiv="refresh" content="0;url=([^"]*)"`).FindStringSubmatch(page)
	if m == nil {
		t.Fatalf("a page that leads nowhere: %s", page)
	}
	return html.UnescapeString(m[1])
}

// goTo presses the button of a page, and returns the address with which the provider sends back.
func (b *browser) goTo(page string) string {
	b.t.Helper()
	res, text := b.send("POST", "/login/oidc", fields(page))
	if res.StatusCode != 200 {
		b.t.Fatalf("to the provider: %s %s", res.Status, text)
	}
	res, text = b.send("GET", leads(b.t, text), nil)
	back, err := res.Location()
	if err != nil {
		b.t.Fatalf("at the provider: %s %s", res.Status, text)
	}
	if back.Scheme+"://"+back.Host+back.Path != "http://127.0.0.1:1/login/oidc/callback" {
		b.t.Fatalf("the provider sends to %s", back)
	}
	return "/login/oidc/callback?" + back.RawQuery
}

// back comes back from the provider, which has begun the request.
func (b *browser) back(at string) (*http.Response, string) {
	b.t.Helper()
	return b.send("GET", at, nil, "Sec-Fetch-Site", "cross-site")
}

func TestAPersonLogsInWithAnIdentityProvider(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t, "anna")
	at.Is(map[string]any{"groups": []string{"NOC"}, "email": "root@example.com"})
	w, b := providing(t, at)
	_, page := b.send("GET", "/login?next=/tasks/7", nil)
	if !strings.Contains(page, "Log in with "+at.URL) {
		t.Fatal(page)
	}
	callback := b.goTo(page)
	res, page := b.back(callback)
	if res.StatusCode != 200 || leads(t, page) != "/tasks/7" || !strings.Contains(page, "oidc:"+at.URL+"#anna") {
		t.Fatalf("%s %s", res.Status, page)
	}
	_, text := b.send("GET", "/v1/whoami", nil, "Accept", "x")
	var who api.Whoami
	if err := json.Unmarshal([]byte(text), &who); err != nil || who.Principal != "oidc:"+at.URL+"#anna" ||
		who.Proof != "session" || strings.Join(who.Groups, " ") != "group:ops" ||
		strings.Join(who.Verbs, " ") != "see plan run order" {
		t.Errorf("who: %s", text)
	}
	if res, page := b.back(callback); res.StatusCode != 403 || !strings.Contains(page, "has begun no login") {
		t.Errorf("the callback again: %s %s", res.Status, page)
	}
	var list api.SessionList
	w.call("GET", "/v1/sessions", nil, &list)
	if len(list.Sessions) != 1 || list.Sessions[0].Proof != "oidc" {
		t.Errorf("sessions: %+v", list)
	}
}

func TestWhoMayNothingHearsWhichGroupsCame(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t, "dora")
	w, b := providing(t, at)
	for name, c := range map[string]struct {
		claims map[string]any
		want   []string
	}{
		"no claim": {map[string]any{}, []string{"has sent no claim groups"}},
		"no group": {map[string]any{"groups": []string{}}, []string{"the claim groups has no group"}},
		"none known": {map[string]any{"groups": []string{"<b>Sales"}},
			[]string{"&lt;b&gt;Sales (came, and is not mapped"}},
		"no grant": {map[string]any{"groups": []string{"Idle", "Sales"}},
			[]string{"group:idle (mapped by server.oidc.groups, without a grant)", "Sales (came"}},
		"too many": {map[string]any{"groups": nil, "_claim_names": map[string]any{"groups": "src1"},
			"_claim_sources": map[string]any{"src1": map[string]any{"endpoint": "https://graph.example"}}},
			[]string{"has left the list of groups (groups) out", "Entra ID"}},
	} {
		at.Is(map[string]any{"groups": nil, "_claim_names": nil, "_claim_sources": nil})
		at.Is(c.claims)
		_, page := b.send("GET", "/login", nil)
		res, page := b.back(b.goTo(page))
		for _, want := range c.want {
			if res.StatusCode != 403 || !strings.Contains(page, want) {
				t.Errorf("%s: %s %s lacks %q", name, res.Status, page, want)
			}
		}
		if b.who() != "" {
			t.Errorf("%s: a session has begun", name)
		}
	}
	if _, text := w.raw("GET", "/metrics", nil, nil); !strings.Contains(string(text), `reason="no_grant"} 4`) ||
		!strings.Contains(string(text), `reason="oidc_groupless"} 1`) {
		t.Error("the metric does not count them")
	}
	if !strings.Contains(w.log.String(), "no_grant") || strings.Contains(w.log.String(), "code=") {
		t.Error("the log")
	}
}

// The answer of a provider counts in the browser that has begun the login, and nowhere else.
func TestALoginIsFinishedWhereItHasBegun(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t, "carla")
	_, b := providing(t, at)
	other := &browser{t: t, base: b.base, http: &http.Client{Transport: b.http.Transport,
		CheckRedirect: b.http.CheckRedirect}}
	other.http.Jar, _ = cookiejar.New(nil)
	_, page := b.send("GET", "/login", nil)
	callback := b.goTo(page)
	// An attacker has somebody else's browser finish the attacker's login.
	if res, _ := other.back(callback); res.StatusCode != 403 || other.who() != "" {
		t.Errorf("in a browser that has begun none: %s", res.Status)
	}
	_, page = other.send("GET", "/login", nil)
	other.goTo(page)
	if res, page := other.back(callback); res.StatusCode != 403 || other.who() != "" ||
		!strings.Contains(page, "has begun another one") {
		t.Errorf("in a browser that has begun another: %s %s", res.Status, page)
	}
	// The cookie of a flow is not one's own to write.
	u, _ := url.Parse(b.base)
	name := "muster-" + u.Port() + "-flow"
	for _, c := range b.http.Jar.Cookies(u) {
		if c.Name != name {
			continue
		}
		data, mac, _ := strings.Cut(c.Value, "~")
		raw, _ := base64.RawURLEncoding.DecodeString(data)
		forged := strings.Replace(string(raw), `"state":"`, `"state":"x`, 1)
		other.http.Jar.SetCookies(u, []*http.Cookie{{Name: name, Path: "/",
			Value: base64.RawURLEncoding.EncodeToString(
				[]byte(forged)) + "~" + mac}})
		if res, _ := other.back(strings.Replace(callback, "state=", "state=x", 1)); res.StatusCode != 403 ||
			other.who() != "" {
			t.Errorf("a forged flow: %s", res.Status)
		}
	}
	if res, page := b.back(callback); res.StatusCode != 200 || b.who() != "oidc:"+at.URL+"#carla" {
		t.Errorf("in its own browser: %s %s", res.Status, page)
	}
	if res, _ := b.send("POST", "/login/oidc", nil, "Origin", "https://evil.example", "Sec-Fetch-Site",
		"cross-site"); res.StatusCode != 403 {
		t.Errorf("another site begins a login: %s", res.Status)
	}
}

// A command line gets its session by a code that works once, and only with the secret behind its
// challenge.
func TestAProgramLogsInByTheBrowser(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t, "carla")
	w, b := providing(t, at)
	verifier := strings.Repeat("v", 43)
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{"port": {"40000"}, "state": {strings.Repeat("s", 26)},
		"challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}}
	code := func() string {
		t.Helper()
		res, page := b.send("GET", "/login/program?"+q.Encode(), nil, "Sec-Fetch-Site", "none")
		if res.StatusCode != 200 || !strings.Contains(page, "port 40000") {
			t.Fatalf("%s %s", res.Status, page)
		}
		res, page = b.back(b.goTo(page))
		to, err := res.Location()
		if err != nil || to.Host != "127.0.0.1:40000" || to.Query().Get("state") != q.Get("state") {
			t.Fatalf("%s %s %v", res.Status, page, to)
		}
		return to.Query().Get("code")
	}
	ask := func(code, verifier string) (int, api.LoginToken) {
		res, text := w.raw("POST", "/login/program/token", api.LoginCode{Code: code, Verifier: verifier}, nil)
		var l api.LoginToken
		_ = json.Unmarshal(text, &l)
		return res.StatusCode, l
	}
	one := code()
	if b.who() != "" {
		t.Error("the browser is logged in, too")
	}
	if status, l := ask(one, strings.Repeat("w", 43)); status != 403 || l.Token != "" {
		t.Errorf("another secret: %d", status)
	}
	if status, _ := ask(one, verifier); status != 403 {
		t.Errorf("the code is good after a wrong secret: %d", status)
	}
	two := code()
	status, l := ask(two, verifier)
	if status != 200 || l.Principal != "oidc:"+at.URL+"#carla" || !strings.HasPrefix(l.Token, "mss_") {
		t.Fatalf("the right one: %d %+v", status, l)
	}
	if status, _ := ask(two, verifier); status != 403 {
		t.Errorf("again: %d", status)
	}
	if res, text := w.raw("GET", "/v1/whoami", nil, bearing(l.Token)); res.StatusCode != 200 ||
		!strings.Contains(string(text), "#carla") {
		t.Errorf("with the session: %s %s", res.Status, text)
	}
	// It is no cookie, and ends by its own order.
	u, _ := url.Parse(b.base)
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "muster-" + u.Port(), Path: "/", Value: l.Token}})
	if b.who() != "" {
		t.Error("the session of a program in a cookie")
	}
	if res, _ := w.raw("POST", "/v1/logout", nil, bearing(l.Token)); res.StatusCode != 204 {
		t.Errorf("logout: %s", res.Status)
	}
	if res, _ := w.raw("GET", "/v1/whoami", nil, bearing(l.Token)); res.StatusCode != 401 {
		t.Errorf("after the logout: %s", res.Status)
	}
}

// A link of somebody else's making begins no login of a program.
func TestOnlyAProgramsLinkBeginsItsLogin(t *testing.T) {
	t.Parallel()
	_, b := providing(t, oidctest.New(t, "carla"))
	sum := sha256.Sum256([]byte("v"))
	q := url.Values{"port": {"40000"}, "state": {strings.Repeat("s", 26)},
		"challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}}
	for name, bad := range map[string]url.Values{"a low port": {"port": {"80"}}, "no port": {"port": {""}},
		"a host": {"port": {"evil.example:1"}}, "a short challenge": {"challenge": {"x"}},
		"no state": {"state": {""}}} {
		all := url.Values{}
		for key := range q {
			all[key] = q[key]
		}
		for key := range bad {
			all[key] = bad[key]
		}
		if res, _ := b.send("GET", "/login/program?"+all.Encode(), nil); res.StatusCode != 400 {
			t.Errorf("%s: %s", name, res.Status)
		}
		if name != "no port" {
			if res, _ := b.send("POST", "/login/oidc", all); res.StatusCode != 403 {
				t.Errorf("%s begins a login: %s", name, res.Status)
			}
		}
	}
}

func TestADeviceLogsIn(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t, "carla")
	w, _ := providing(t, at)
	ask := func(path string, in any) (int, api.LoginDevice, string) {
		res, text := w.raw("POST", path, in, nil)
		var d api.LoginDevice
		_ = json.Unmarshal(text, &d)
		return res.StatusCode, d, string(text)
	}
	status, d, text := ask("/login/device", map[string]any{})
	if status != 200 || d.UserCode == "" || d.URL != at.URL+"/activate" || d.Handle == "" {
		t.Fatal(status, text)
	}
	if status, wait, text := ask("/login/device/token", d); status != 202 || wait.Interval < 5 {
		t.Error(status, text)
	}
	forged := d
	forged.Handle = "x" + d.Handle
	if status, _, text := ask("/login/device/token", forged); status != 403 {
		t.Error("a forged handle:", status, text)
	}
	at.Confirm(d.UserCode, true)
	status, _, text = ask("/login/device/token", d)
	var l api.LoginToken
	if err := json.Unmarshal([]byte(text), &l); status != 200 || err != nil ||
		l.Principal != "oidc:"+at.URL+"#carla" {
		t.Fatal(status, text)
	}
	if res, _ := w.raw("GET", "/v1/tasks", nil, bearing(l.Token)); res.StatusCode != 200 {
		t.Errorf("with the session: %s", res.Status)
	}
	if status, _, text := ask("/login/device/token", d); status != 403 {
		t.Error("again:", status, text)
	}
	for i := 0; ; i++ {
		if status, _, _ := ask("/login/device", map[string]any{}); status == 429 {
			break
		} else if i > 40 {
			t.Fatal("strangers begin as many as they like")
		}
	}
	plain := start(t, setup{})
	if res, text := plain.raw("POST", "/login/device", map[string]any{}, nil); res.StatusCode != 409 ||
		!strings.Contains(string(text), "server.oidc") {
		t.Errorf("a server without a provider: %s %s", res.Status, text)
	}
}
