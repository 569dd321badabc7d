package server_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/serverkey"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/testkit/redistest"
)

// A writer to Redis makes no session and no link, changes none, and makes none last longer.
func TestAWriterToRedisMakesNoSession(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t)
	cfg := redis.Config()
	var at atomic.Int64
	at.Store(time.Now().UnixNano())
	w, b := housed(t, setup{redis: &cfg, now: func() time.Time { return time.Unix(0, at.Load()) }})
	raw := redistest.Raw(t, queue.Config{URL: cfg.URL}, "hub")
	ctx, key := t.Context(), keys.Hub("sessions", "")
	bob := w.token("bob")
	l := w.link(bearing(bob))
	linkID := strings.Split(l.URL, "_")[1]
	linkText := raw.HGet(ctx, key, linkID).Val()
	if strings.Contains(linkText, strings.SplitN(l.URL, "_", 3)[2]) {
		t.Error("Redis has the secret of a link")
	}
	b.enter(l.URL)
	if b.who() != "user:bob" {
		t.Fatal("Bob is not logged in")
	}
	secret := b.cookie().Value
	id := strings.Split(secret, "_")[1]
	good := raw.HGet(ctx, key, id).Val()
	u, _ := url.Parse(b.base)
	restore := func() { raw.HSet(ctx, key, id, good) }
	forger, err := serverkey.Parse([]byte(serverkey.File("testworld", [serverkey.Size]byte{9})))
	if err != nil {
		t.Fatal(err)
	}
	_, data, _ := strings.Cut(good, " ")
	admin := strings.Replace(data, "user:bob", localName(t), 1)
	mac, _, _ := strings.Cut(good, " ")
	for name, text := range map[string]string{
		"another owner":       strings.Replace(good, "user:bob", "user:carol", 1),
		"another end":         regexp.MustCompile(`"expires":"2`).ReplaceAllString(good, `"expires":"3`),
		"another user":        regexp.MustCompile(`"user":\d+`).ReplaceAllString(good, `"user":0,"x":1`),
		"a record of a link":  linkText,
		"no MAC":              data,
		"an empty text":       "",
		"a MAC of somebody":   forger.MAC(serverkey.Sessions, "browser", admin) + " " + admin,
		"the MAC of this one": mac + " " + admin,
	} {
		raw.HSet(ctx, key, id, text)
		if got := b.who(); got != "" {
			t.Errorf("%s: the browser is %s", name, got)
		}
	}
	restore()
	// A session under another id, and a token under the id of a session.
	raw.HSet(ctx, key, "aaaaaaaaaaaa", good)
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "muster-" + u.Port(), Value: strings.Replace(secret, id,
		"aaaaaaaaaaaa", 1), Path: "/"}})
	if got := b.who(); got != "" {
		t.Errorf("a record under another id: %s", got)
	}
	for tokenID, text := range raw.HGetAll(ctx, keys.Hub("tokens", "")).Val() {
		raw.HSet(ctx, key, tokenID, text)
		b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "muster-" + u.Port(), Value: strings.Replace(bob, "mst_",
			"mss_", 1), Path: "/"}})
		if got := b.who(); got != "" {
			t.Errorf("the record of a token as that of a session: %s", got)
		}
	}
	b.http.Jar.SetCookies(u, []*http.Cookie{{Name: "muster-" + u.Port(), Value: secret, Path: "/"}})
	if b.who() != "user:bob" {
		t.Error("the good record does not hold")
	}
	// Nobody makes a session last by inventing its last use.
	at.Add(int64(8 * time.Hour))
	used := raw.HGet(ctx, key, id+"/used").Val()
	raw.HSet(ctx, key, id+"/used", strings.SplitN(used, " ", 2)[0]+" 99999999999999999")
	if got := b.who(); got != "" {
		t.Error("an invented use keeps a session")
	}
	if res, text := w.raw("GET", "/metrics", nil, nil); !strings.Contains(string(text),
		`muster_logins_refused_total{reason="forged_session"}`) {
		t.Errorf("the metric: %s", res.Status)
	}
}

// On a port without TLS a session is of one user of the machine: the port of another user, to which
// the browser sends the cookie as well, learns a secret that is worth nothing.
func TestACookieOfAnotherUserOfTheMachineIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	w, b := housed(t, setup{})
	b.enter(w.link(nil).URL)
	c := b.cookie()
	_, port, _ := net.SplitHostPort(b.base[len("http://"):])
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ask := func(as ...string) string {
		script := `exec 3<>/dev/tcp/127.0.0.1/` + port + `; printf 'GET /v1/whoami HTTP/1.1\r\nHost: 127.0.0.1:` +
			port + `\r\nCookie: ` + c.Name + "=" + c.Value + `\r\nConnection: close\r\n\r\n' >&3; cat <&3`
		out, err := exec.CommandContext(ctx, as[0], append(as[1:], "bash", "-c", script)...).CombinedOutput()
		if err != nil {
			t.Fatal(err, string(out))
		}
		return string(out)
	}
	if got := ask("env"); !strings.Contains(got, `"proof":"session"`) {
		t.Errorf("the same user: %s", got)
	}
	if got := ask("setpriv", "--reuid=61234", "--clear-groups"); !strings.Contains(got, "401 ") ||
		!strings.Contains(got, "another user") {
		t.Errorf("another user: %s", got)
	}
}
