package sessions

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"muster/internal/proc"
)

// Path is the page of the login; the others of its pages are below it.
const Path = "/login"

// The paths of the pages.
const (
	oncePath   = Path + "/once"
	logoutPath = "/logout"
)

// IsLogin reports whether a path is one of the login's, which strangers may call.
func IsLogin(path string) bool {
	return path == Path || strings.HasPrefix(path, Path+"/") || path == logoutPath
}

// Shown returns a path for a log: without the secret that a link has in it.
func Shown(path string) string {
	if strings.HasPrefix(path, oncePath+"/") {
		return oncePath + "/…"
	}
	return path
}

// Arrives reports whether a browser comes to the login from anywhere, as by a link in a message or
// from an identity provider: it opens a page by itself, not within a page. A GET changes nothing
// here that a session of the caller could do.
func Arrives(r *http.Request) bool { return IsLogin(r.URL.Path) && navigates(r) }

// navigates reports whether a browser opens a page of its own.
func navigates(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) &&
		r.Header.Get("Origin") == "" && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document"
}

// WantsPage reports whether a browser asks for a page, not a program for an answer of the API: who
// has no session is sent to LoginURL.
func WantsPage(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || IsLogin(r.URL.Path) ||
		strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/metrics" ||
		r.URL.Path == "/openapi.json" || r.Header.Get("Authorization") != "" {
		return false
	}
	mode := r.Header.Get("Sec-Fetch-Mode")
	return strings.Contains(r.Header.Get("Accept"), "text/html") && (mode == "" || mode == "navigate")
}

// LoginURL returns where to send a browser without a session. After the login it comes back to the
// page that it asked for.
func LoginURL(r *http.Request) string {
	if next := ownPath(r.URL.RequestURI()); next != "" && next != "/" {
		return Path + "?next=" + url.QueryEscape(next)
	}
	return Path
}

// ownPath returns a path with its query, if it can lead to no other server; else nothing.
func ownPath(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || len(text) > 2000 ||
		!strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f }) {
		return ""
	}
	return text
}

// connKey is the key of the user at the other end of a plain TCP connection, in the context of
// its requests.
type connKey struct{}

// WithConn keeps who has connected over TCP, which is looked up when it is needed.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	if _, encrypted := c.(*tls.Conn); encrypted {
		return ctx
	}
	return context.WithValue(ctx, connKey{}, sync.OnceValues(func() (int, error) {
		return proc.UserOfTCP(c)
	}))
}

// userOf returns the function that tells whose program calls over plain TCP; nil: the call came
// over TLS, so nobody else reads it.
func userOf(r *http.Request) func() (int, error) {
	if r.TLS != nil {
		return nil
	}
	if user, known := r.Context().Value(connKey{}).(func() (int, error)); known {
		return user
	}
	return func() (int, error) { return 0, errors.New("nobody can tell who calls") }
}

// cookieName returns the name of the cookie with the secret of a session. With TLS browsers take a
// cookie of such a name only from this host, over TLS. Without it all ports of this machine share
// their cookies, so the port is in the name.
func cookieName(r *http.Request) string {
	if r.TLS != nil {
		return "__Host-muster"
	}
	port := ""
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		_, port, _ = net.SplitHostPort(a.String())
	}
	return "muster-" + port
}

// Shows returns the secret that the cookie of a request has; sent reports whether there is one.
// With what another site has begun no cookie counts, also if a browser sends it.
func Shows(r *http.Request) (secret string, sent bool) {
	if Arrives(r) && !OwnPage(r) {
		return "", false
	}
	list := r.CookiesNamed(cookieName(r))
	switch len(list) {
	case 0:
		return "", false
	case 1:
		return list[0].Value, true
	}
	return "", true // somebody has planted a second one: which is ours cannot be told
}

// OwnPage reports whether a request with a cookie comes from a page of this server, or from a
// person who has typed its address. A request that changes something has to say where it comes
// from, as all browsers of today do.
func OwnPage(r *http.Request) bool {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	origin, site := r.Header.Get("Origin"), r.Header.Get("Sec-Fetch-Site")
	if origin != "" && origin != scheme+r.Host {
		return false
	}
	switch site {
	case "same-origin", "none":
		return true
	case "":
		return origin != "" || r.Method == http.MethodGet || r.Method == http.MethodHead
	}
	return false
}

// userCookie returns the cookie with the secret of a session; an empty one takes it away.
func userCookie(r *http.Request, value string, until time.Time) *http.Cookie {
	c := &http.Cookie{Name: cookieName(r), Value: value, Path: "/", HttpOnly: true,
		Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode, Expires: until}
	if value == "" {
		c.MaxAge = -1
	}
	return c
}
