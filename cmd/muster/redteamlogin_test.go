package main

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"muster/api"
	"muster/internal/serverkey"
	"muster/jobs/queue/keys"
	"muster/testkit/porttest"
	"muster/testkit/redistest"
)

// ported is a house whose server has a port beside its socket.
func ported(t *testing.T, server map[string]any) (h *house, base string) {
	t.Helper()
	h = newCellar(t, "hosts: {}\n")
	place := porttest.Addr(t)
	server["listen"] = []string{listenOn(h.url), place}
	h.configure(map[string]any{"server": server})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	return h, "http://" + place
}

// A page is what a browser has got.
type webPage struct {
	status int
	text   string
	cookie *http.Cookie
}

// browse makes one request of a browser, which follows nothing.
func browse(t *testing.T, method, at string, form url.Values, cookies ...*http.Cookie) webPage {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, c := range cookies {
		req.AddCookie(c)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	p := webPage{status: res.StatusCode, text: string(text)}
	if list := res.Cookies(); len(list) > 0 {
		p.cookie = list[0]
	}
	return p
}

// press presses the button of a link's page.
func press(t *testing.T, base, link string) webPage {
	t.Helper()
	return browse(t, "POST", base+"/login/once", url.Values{"secret": {link[strings.LastIndex(link, "/")+1:]}})
}

// A writer to Redis logs nobody in: neither by a record of a session or a link, nor by one of
// another kind, nor by a changed one. None of its attacks is answered as anybody.
func TestAWriterToRedisLogsNobodyIn(t *testing.T) {
	t.Parallel()
	h, base := ported(t, map[string]any{})
	a := redistest.NewIntruder(t, h.redis)
	key := keys.Hub("sessions", "")
	link := func() (l api.LoginLink, id string) {
		t.Helper()
		if code := h.query(&l, "login", "--browser"); code != 0 {
			t.Fatalf("login --browser: exit %d", code)
		}
		return l, strings.Split(l.URL, "_")[1]
	}
	l, linkID := link()
	linkText := a.Get(key, linkID)
	c := press(t, base, l.URL).cookie
	if c == nil {
		t.Fatal("the link logs nobody in")
	}
	id := strings.Split(c.Value, "_")[1]
	good := a.Get(key, id)
	mac, data, _ := strings.Cut(good, " ")
	forger, err := serverkey.Parse([]byte(serverkey.File("testhouse", [serverkey.Size]byte{9})))
	if err != nil {
		t.Fatal(err)
	}
	_, linkData, _ := strings.Cut(linkText, " ")
	who := func(c *http.Cookie) webPage { return browse(t, "GET", base+"/v1/whoami", nil, c) }
	if p := who(c); p.status != 200 || !strings.Contains(p.text, l.Principal) {
		t.Fatalf("the session: %d %s", p.status, p.text)
	}
	owner := `"owner":"` + l.Principal + `"`
	attacks := map[string]string{
		"another owner":               strings.Replace(good, owner, `"owner":"user:eve"`, 1),
		"a later end":                 strings.Replace(good, `"expires":"2`, `"expires":"3`, 1),
		"another beginning":           strings.Replace(good, `"created":"2`, `"created":"3`, 1),
		"another user of the machine": strings.Replace(good, `"user":`, `"user":1`, 1),
		"a group":                     strings.Replace(good, `"groups":null`, `"groups":["group:admins"]`, 1),
		"no token":                    strings.Replace(good, `"token":""`, `"token":"x"`, 1),
		"a program's":                 strings.Replace(good, `"kind":"browser"`, `"kind":"program"`, 1),
		"the record of a link":        linkText,
		"a link called a session":     strings.Replace(linkText, `"kind":"link"`, `"kind":"browser"`, 1),
		"no MAC":                      data,
		"an empty MAC":                " " + data,
		"a key of one's own":          forger.MAC(serverkey.Sessions, "browser", data) + " " + data,
		"no JSON":                     mac + " {",
		"nothing":                     "",
	}
	for name, text := range attacks {
		if text == good {
			t.Fatalf("%s: the attack changes nothing", name)
		}
		a.Set(key, id, text)
		if p := who(c); p.status != 401 {
			t.Errorf("%s: %d %s", name, p.status, p.text)
		}
	}
	a.Set(key, id, good)
	if p := who(c); p.status != 200 {
		t.Errorf("the good record: %d %s", p.status, p.text)
	}
	for name, text := range map[string]string{
		"another owner":      strings.Replace(linkText, owner, `"owner":"user:eve"`, 1),
		"the MAC of another": mac + " " + linkData,
		"a session":          good,
		"a key of one's own": forger.MAC(serverkey.Sessions, "link", linkData) + " " + linkData,
	} {
		l, id := link()
		a.Set(key, id, text)
		if p := press(t, base, l.URL); p.status != 403 || p.cookie != nil {
			t.Errorf("a link, %s: %d %s", name, p.status, p.text)
		}
	}
	if strings.Contains(h.server.log.String(), c.Value) {
		t.Error("the log has the secret of a session")
	}
}
