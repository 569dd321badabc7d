package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/access"
	"muster/server/tokens"
	"muster/server/web"
)

const (
	// secretMax bounds what is hashed and looked up as a token.
	secretMax = 200 // bytes
)

// A tokenFinder finds the record of a token. Its error is a *tokens.Refusal if the token proves
// nobody.
type tokenFinder interface {
	Find(ctx context.Context, token string) (tokens.Record, error)
	ScopeOf(r tokens.Record) (*access.Scope, error)
}

// guard identifies the caller of a request, and keeps strangers out.
type guard struct {
	tokens tokenFinder
	door   *keptOut
	claims bool // whoever is on the unix socket may say another name
}

// let lets nobody in who has to be kept out, before anything of the request
// is decoded.
func (s guard) let(x *web.Exchange, r *http.Request, next http.Handler) {
	h := x.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	who, err := s.identify(r)
	if err != nil {
		s.door.out(r, err)
		web.WriteProblem(x, err)
		return
	}
	x.Who = who
	next.ServeHTTP(x, r)
}

// identify tells who sends a request, or why it is refused.
func (s guard) identify(r *http.Request) (web.Caller, error) {
	if err := checkOrigin(r); err != nil {
		return web.Caller{}, err
	}
	secret, sent, err := bearer(r.Header)
	user, socket := r.Context().Value(peerKey{}).(peerUser)
	switch {
	case err != nil:
		return web.Caller{}, err
	case sent:
		t, err := s.tokens.Find(r.Context(), secret)
		var no *tokens.Refusal
		if errors.As(err, &no) {
			return web.Caller{}, unauthorized(no.Reason, no.Error())
		}
		if err != nil {
			return web.Caller{}, web.Problem(err)
		}
		scope, err := s.tokens.ScopeOf(t)
		return web.Caller{Name: t.Owner, Groups: groupsOf(t.Owner), Token: t.ID,
			Until: t.Expires.Time, Scope: scope}, web.Problem(err)
	case socket:
		return localCaller(r, user, s.claims)
	}
	if who, sent, err := certified(r, time.Now()); sent {
		return who, err
	}
	if fromHere(r) {
		if err := checkHost(r); err != nil {
			return web.Caller{}, err
		}
	}
	if r.URL.Path == web.HealthPath {
		return web.Caller{}, nil
	}
	return web.Caller{}, unauthorized("no_token",
		"a token is needed here: set MUSTER_TOKEN; make one on "+
			"the server's machine, over its unix socket, with `muster token create NAME`")
}

// fromHere reports whether a request came over the loopback of this machine.
func fromHere(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// bearer reads the token of a request; sent reports whether there is any.
func bearer(h http.Header) (secret string, sent bool, err error) {
	values := h.Values("Authorization")
	if len(values) == 0 {
		return "", false, nil
	}
	scheme, secret, _ := strings.Cut(values[0], " ")
	secret = strings.TrimSpace(secret)
	if len(values) > 1 || !strings.EqualFold(scheme, "bearer") || secret == "" ||
		len(secret) > secretMax {
		return "", true, unauthorized("malformed", "want one header `Authorization: Bearer TOKEN`")
	}
	return secret, true, nil
}

// A denial refuses a caller. Its reason is one of few words, for a metric.
type denial struct {
	error
	reason string
}

// Unwrap is the answer.
func (d *denial) Unwrap() error { return d.error }

// challenges are the codes of RFC 6750 of those reasons that have one.
var challenges = map[string]string{tokens.Unknown: "invalid_token", tokens.Expired: "invalid_token",
	tokens.Forged: "invalid_token", tokens.Keyless: "invalid_token", "malformed": "invalid_request"}

func unauthorized(reason, words string) error {
	challenge := `Bearer realm="muster"`
	if code := challenges[reason]; code != "" {
		challenge += fmt.Sprintf(`, error="%s"`, code)
	}
	return &denial{huma.ErrorWithHeaders(huma.Error401Unauthorized(words),
		http.Header{"Www-Authenticate": {challenge}}), reason}
}

func forbidden(reason, format string, args ...any) error {
	return &denial{huma.Error403Forbidden(fmt.Sprintf(format, args...)), reason}
}

// checkHost refuses a request over loopback without a token, unless it names this machine: it may
// come from a page of another site, in a browser here, under a name that resolves to 127.0.0.1.
func checkHost(r *http.Request) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host != "localhost" && !isLoopback(strings.Trim(host, "[]")) {
		return forbidden("foreign_page", "host %q is not this machine: without a token call 127.0.0.1, "+
			"[::1] or localhost", web.Clip(r.Host))
	}
	return nil
}

// checkOrigin refuses what a browser sends for a page of another site, whoever the caller is: also
// with a token, and through whatever passes requests on to the socket.
func checkOrigin(r *http.Request) error {
	if from := r.Header.Get("Origin"); from != "" {
		if u, err := url.Parse(from); err != nil || u.Host != r.Host {
			return forbidden("foreign_page", "a page of %q may not call this: only programs may, and the "+
				"server's own pages", web.Clip(from))
		}
	}
	// Without the following check, pages of other origins could read.
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return forbidden("foreign_page", "a page of another site may not call this")
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return forbidden("foreign_page", "a page of another site may not call this: %s", err)
	}
	return nil
}
