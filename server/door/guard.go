package door

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
	"muster/server/sessions"
	"muster/server/tokens"
	"muster/server/web"
)

const (
	// secretMax bounds what is hashed and looked up as a token.
	secretMax = 200 // bytes
	// foreignPage is the reason to refuse what a page of another site sends.
	foreignPage = "foreign_page"
)

// A Finder finds the record of a token. Its error is a *tokens.Refusal if the token proves
// nobody.
type Finder interface {
	Find(ctx context.Context, token string) (tokens.Record, error)
	ScopeOf(r tokens.Record) (*access.Scope, error)
}

// Guard identifies the caller of a request, and keeps strangers out.
type Guard struct {
	Tokens   Finder
	Sessions *sessions.Book
	Door     *Refusals
	Claims   bool // whoever is on the unix socket may say another name
}

// Let lets nobody in who has to be kept out, before anything of the request
// is decoded.
func (s Guard) Let(x *web.Exchange, r *http.Request, next http.Handler) {
	h := x.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	who, err := s.Identify(r)
	reason := reasonOf(err)
	switch {
	case err == nil:
		x.Who = who
	case sessions.IsLogin(r.URL.Path) && reason != "" && reason != foreignPage:
		// People without a proof, or with one that has ended, come here for a new one.
	case sessions.WantsPage(r):
		http.Redirect(x, r, sessions.LoginURL(r), http.StatusSeeOther)
		return
	default:
		s.Door.out(r, err)
		web.WriteProblem(x, err)
		return
	}
	x.Again = func() (web.Caller, error) { return s.Identify(r) }
	next.ServeHTTP(x, r)
}

// Identify tells who sends a request, or why it is refused.
func (s Guard) Identify(r *http.Request) (web.Caller, error) {
	if err := checkOrigin(r); err != nil {
		return web.Caller{}, err
	}
	secret, sent, err := bearer(r.Header)
	user, socket := r.Context().Value(peerKey{}).(peerUser)
	cookie, shown := sessions.Shows(r)
	switch {
	case err != nil:
		return web.Caller{}, err
	case strings.HasPrefix(secret, sessions.Prefix):
		return s.session(r, sessions.Program, secret)
	case sent:
		t, err := s.Tokens.Find(r.Context(), secret)
		var no *tokens.Refusal
		if errors.As(err, &no) {
			return web.Caller{}, unauthorized(no.Reason, no.Error())
		}
		if err != nil {
			return web.Caller{}, web.Problem(err)
		}
		scope, err := s.Tokens.ScopeOf(t)
		return web.Caller{Name: t.Owner, Groups: groupsOf(t.Owner), Token: t.ID,
			Until: t.Expires.Time, Scope: scope}, web.Problem(err)
	case socket:
		// A page whose name was made to mean this machine reaches the socket through whatever passes
		// a port on to it, such as ssh -L.
		if err := checkHost(r); err != nil {
			return web.Caller{}, err
		}
		return localCaller(r, user, s.Claims)
	case shown:
		return s.browser(r, cookie)
	}
	if who, sent, err := certified(r, time.Now()); sent {
		return who, err
	}
	if fromHere(r) && !(r.TLS != nil && sessions.IsLogin(r.URL.Path)) {
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

// browser returns the caller whose browser shows the cookie of a session.
func (s Guard) browser(r *http.Request, cookie string) (web.Caller, error) {
	if !sessions.OwnPage(r) {
		return web.Caller{}, forbidden(foreignPage, "a browser with a session may call this from the "+
			"server's own pages only")
	}
	if r.TLS == nil {
		if err := checkHost(r); err != nil {
			return web.Caller{}, err
		}
	}
	return s.session(r, sessions.Browser, cookie)
}

// session returns the caller who shows the secret of a session.
func (s Guard) session(r *http.Request, kind sessions.Kind, secret string) (web.Caller, error) {
	who, err := s.Sessions.Find(r, kind, secret)
	var no *sessions.Refusal
	if errors.As(err, &no) {
		return web.Caller{}, unauthorized(no.Reason, no.Error())
	}
	if err != nil {
		return web.Caller{}, web.Problem(err)
	}
	who.Groups = append(who.Groups, groupsOf(who.Name)...)
	return who, nil
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

// reasonOf returns the reason of a denial; empty: the error is none.
func reasonOf(err error) string {
	var d *denial
	if errors.As(err, &d) {
		return d.reason
	}
	return ""
}

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

// checkHost refuses a request without a token, over loopback or a socket, unless it names this
// machine: it may come from a page of another site, in a browser here, whose name means 127.0.0.1.
func checkHost(r *http.Request) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host != "localhost" && !IsLoopback(strings.Trim(host, "[]")) {
		return forbidden(foreignPage, "host %q is not this machine: without a token call 127.0.0.1, "+
			"[::1] or localhost", web.Clip(r.Host))
	}
	return nil
}

// checkOrigin refuses what a browser sends for a page of another site, whoever the caller is: also
// with a token, and through whatever passes requests on to the socket.
func checkOrigin(r *http.Request) error {
	if sessions.Arrives(r) {
		return nil
	}
	if from := r.Header.Get("Origin"); from != "" {
		if u, err := url.Parse(from); err != nil || u.Host != r.Host {
			return forbidden(foreignPage, "a page of %q may not call this: only programs may, and the "+
				"server's own pages", web.Clip(from))
		}
	}
	// Without the following check, pages of other origins could read.
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return forbidden(foreignPage, "a page of another site may not call this")
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return forbidden(foreignPage, "a page of another site may not call this: %s", err)
	}
	return nil
}

// IsLoopback reports whether an address is one of this machine alone.
func IsLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
