package server_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
)

// from makes a request as if it came from an address, and gives the answer.
func (w *world) from(address string, r *http.Request) *httptest.ResponseRecorder {
	r.RemoteAddr = address
	rec := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(rec, r)
	return rec
}

func TestWhoGetsIn(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	token := w.token("carol")
	const here, beyond = "127.0.0.1:4711", "192.0.2.7:4711"
	type headers map[string]string
	good := headers{"Authorization": "Bearer " + token}
	for _, c := range []struct {
		name, from, host, target string
		header                   headers
		want                     int
		words                    string
	}{
		{"loopback", here, "127.0.0.1:7070", "GET /v1/tasks", nil, 401, "a token is needed"},
		{"loopback of IPv6", "[::1]:4711", "[::1]:7070", "GET /v1/tasks", nil, 401, "a token is needed"},
		{"loopback of IPv4 in IPv6", "[::ffff:127.0.0.1]:4711", "localhost", "GET /v1/tasks", nil, 401, "a token is needed"},
		{"localhost", here, "localhost:7070", "GET /v1/tasks", nil, 401, "a token is needed"},
		{"token on loopback", here, "localhost:7070", "GET /v1/tasks", good, 200, ""},
		{"token under any name", here, "muster.example:7070", "GET /v1/tasks", good, 200, ""},
		{"token in lower case scheme", beyond, "muster.example", "GET /v1/tasks",
			headers{"Authorization": "bearer " + token}, 200, ""},
		{"token from beyond", beyond, "muster.example", "GET /v1/tasks", good, 200, ""},

		{"beyond", beyond, "127.0.0.1:7070", "GET /v1/tasks", nil, 401, "a token is needed"},
		{"beyond, document", beyond, "x", "GET /openapi.json", nil, 401, "a token is needed"},
		{"beyond, metrics", beyond, "x", "GET /metrics", nil, 401, "a token is needed"},
		{"beyond, no such route", beyond, "x", "GET /", nil, 401, "a token is needed"},
		{"beyond, path variants", beyond, "x", "GET //v1/health/../tasks", nil, 401, "a token is needed"},
		{"beyond, user claimed", beyond, "x", "GET /v1/tasks", headers{api.UserHeader: "root"}, 401, "a token"},
		{"beyond, health", beyond, "x", "GET /v1/health", nil, 200, ""},
		{"no address", "", "localhost", "GET /v1/tasks", nil, 401, "a token is needed"},
		{"not quite loopback", "127.0.0.1.example:1", "localhost", "GET /v1/tasks", nil, 401, "a token"},
		{"wrong token", beyond, "x", "GET /v1/tasks", headers{"Authorization": "Bearer " + token[:len(token)-1]}, 401,
			"not known"},
		{"wrong token on loopback", here, "localhost", "GET /v1/tasks", headers{"Authorization": "Bearer x"}, 401,
			"not known"},
		{"wrong token for health", here, "localhost", "GET /v1/health", headers{"Authorization": "Bearer x"}, 401, ""},
		{"empty token", here, "localhost", "GET /v1/tasks", headers{"Authorization": "Bearer "}, 401, "want one header"},
		{"password", here, "localhost", "GET /v1/tasks", headers{"Authorization": "Basic eDp5"}, 401, "want one header"},
		{"long token", here, "localhost", "GET /v1/tasks",
			headers{"Authorization": "Bearer " + strings.Repeat("x", 300)}, 401, "want one header"},

		{"rebound name", here, "evil.example", "GET /v1/tasks", nil, 403, `evil.example\" is not this machine`},
		{"rebound name, health", here, "evil.example", "GET /v1/health", nil, 403, "is not this machine"},
		{"name that begins like ours", here, "127.0.0.1.evil.example:7070", "GET /v1/tasks", nil, 403, "is not"},
		{"no host", here, "", "GET /v1/tasks", nil, 403, "is not this machine"},
		{"page of ours", here, "127.0.0.1:7070", "GET /v1/tasks", headers{"Origin": "http://127.0.0.1:7070"}, 401,
			"a token is needed"},
		{"document on loopback", here, "localhost", "GET /openapi.json", nil, 401, "a token is needed"},
		{"metrics on loopback", here, "localhost", "GET /metrics", nil, 401, "a token is needed"},
		{"metrics with a token", here, "localhost", "GET /metrics", good, 200, "muster_build_info"},
		{"user claimed on loopback", here, "localhost", "GET /v1/tasks", headers{api.UserHeader: "root"}, 401,
			"a token is needed"},
		{"health on loopback", here, "localhost", "GET /v1/health", nil, 200, ""},
		{"page of another port", here, "127.0.0.1:7070", "GET /v1/tasks", headers{"Origin": "http://127.0.0.1:80"}, 403,
			"may not call this"},
		{"page of another site", here, "127.0.0.1:7070", "POST /v1/tasks", headers{"Origin": "https://evil.example"}, 403,
			"may not call this"},
		{"page of nowhere", here, "127.0.0.1:7070", "POST /v1/tasks", headers{"Origin": "null"}, 403, "may not call this"},
		{"page of another site, with a token", beyond, "muster.example", "GET /v1/tasks",
			headers{"Origin": "https://evil.example", "Authorization": "Bearer " + token}, 403, "may not call this"},
		{"page of nowhere, with a token", here, "localhost", "GET /v1/tasks",
			headers{"Origin": "null", "Authorization": "Bearer " + token}, 403, "may not call this"},
		{"picture of another site, with a token", beyond, "muster.example", "GET /v1/tasks",
			headers{"Sec-Fetch-Site": "cross-site", "Authorization": "Bearer " + token}, 403, "another site"},
		{"picture of a sister site, with a token", beyond, "muster.example", "GET /v1/tasks",
			headers{"Sec-Fetch-Site": "same-site", "Authorization": "Bearer " + token}, 403, "another site"},
		{"own page, with a token", beyond, "muster.example", "GET /v1/tasks", headers{"Origin": "https://muster.example",
			"Sec-Fetch-Site": "same-origin", "Authorization": "Bearer " + token}, 200, ""},
		{"form of another site", here, "127.0.0.1:7070", "POST /v1/tasks", headers{"Sec-Fetch-Site": "cross-site"}, 403,
			"another site"},
		{"through a proxy", here, "127.0.0.1:7070", "GET /v1/tasks", headers{"X-Forwarded-For": "192.0.2.7"}, 401,
			"a token is needed"},
		{"token through a proxy", here, "127.0.0.1:7070", "GET /v1/tasks", headers{"X-Forwarded-For": "192.0.2.7",
			"Authorization": "Bearer " + token}, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			method, path, _ := strings.Cut(c.target, " ")
			r := httptest.NewRequest(method, "/", strings.NewReader(""))
			r.URL.Path, r.Host = path, c.host
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			rec := w.from(c.from, r)
			if rec.Code != c.want || !strings.Contains(rec.Body.String(), c.words) {
				t.Errorf("got %d %s, want %d %q", rec.Code, rec.Body, c.want, c.words)
			}
			challenge := rec.Header().Get("WWW-Authenticate")
			if (rec.Code == 401) != strings.HasPrefix(challenge, "Bearer") {
				t.Errorf("status %d with challenge %q", rec.Code, challenge)
			}
			if rec.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Error("a browser may guess the type of the answer")
			}
		})
	}
}

func TestEveryRouteIsClosedToStrangers(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for _, route := range w.routes() {
		method, path, _ := strings.Cut(route, " ")
		r := httptest.NewRequest(method, "http://x"+path, nil)
		rec := w.from("192.0.2.7:1", r)
		if want := 401; path != "/v1/health" && rec.Code != want {
			t.Errorf("%s answers a stranger with %d, want %d", route, rec.Code, want)
		}
	}
}

func TestStrangersHearOnlyWhetherWeAreWell(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	rec := w.from("192.0.2.7:1", httptest.NewRequest("GET", "/v1/health", nil))
	var h api.Health
	if err := json.Unmarshal(rec.Body.Bytes(), &h); err != nil || (h != api.Health{Status: "ok"}) {
		t.Errorf("got %s, %v", rec.Body, err)
	}
}

func TestOperatorOfATask(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	token := w.token("carol")
	for _, c := range []struct {
		name, as, user, token string
		status                int
		operator              string
		proven                bool
	}{
		{"user of the system", "", "dave", "", 201, "dave", false},
		{"as", "bob", "dave", "", 201, "bob", false},
		{"token", "", "dave", token, 201, "user:carol", true},
		{"token and as", "user:carol", "", token, 201, "user:carol", true},
		{"token and as somebody else", "bob", "", token, 422, "", false},
		{"who the kernel says", "", "", "", 201, localName(t), true},
		{"strange user", "", "a\tb", "", 422, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := run("fw001")
			body.As = c.as
			h := http.Header{api.UserHeader: {c.user}}
			if c.token != "" {
				h.Set("Authorization", "Bearer "+c.token)
			}
			res, text := w.raw("POST", "/v1/tasks", body, h)
			var got jobs.TaskInfo
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status || got.Operator != c.operator || got.Proven != c.proven {
				t.Errorf("got %s %s", res.Status, text)
			}
		})
	}
}

func TestUnixSocketNeedsNoToken(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	if got := w.submit(run("fw001")); got.Operator != "alice" || got.Proven {
		t.Errorf("got %+v", got)
	}
	header := http.Header{"Via": {"1.1 proxy"}}
	if res, text := w.raw("GET", "/v1/tasks", nil, header); res.StatusCode != 401 {
		t.Errorf("through a proxy: %s %s", res.Status, text)
	}
	for name, value := range map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"} {
		header := http.Header{name: {value}}
		if res, text := w.raw("GET", "/v1/tasks", nil, header); res.StatusCode != 403 {
			t.Errorf("for a page of another site (%s): %s %s", name, res.Status, text)
		}
	}
}
