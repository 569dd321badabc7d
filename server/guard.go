package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs/queue"
)

const (
	healthPath = "/v1/health"
	// secretMax bounds what is hashed and looked up as a token.
	secretMax = 200 // bytes
	// localPrefix begins the name of a user of this machine. No token's name can have a colon.
	localPrefix = "local:"
)

// caller is who asks, as a token or the kernel says.
type caller struct {
	name   string // of the token, or local:USER; empty: neither says it
	local  bool   // over a unix socket, without a token
	claims bool   // may say another name
}

// trusted reports whether the caller may know more than whether we are well.
func (c caller) trusted() bool { return c.name != "" }

// exchange is a request that is answered: who asks, and what was said.
type exchange struct {
	http.ResponseWriter
	who    caller
	status int // 0: nothing was said
}

// WriteHeader notes the status.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write notes that something was said.
func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	return x.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// Asked is part of the input of those routes that must know who asks.
type Asked struct{ who caller }

// Resolve reads it from the exchange, where no client can write it.
func (a *Asked) Resolve(ctx huma.Context) []error {
	_, w := humago.Unwrap(ctx)
	x, ok := w.(*exchange)
	if !ok {
		return []error{huma.Error500InternalServerError("nobody has looked at who asks")}
	}
	a.who = x.who
	return nil
}

// guard lets nobody in who has to be kept out, before anything of the request
// is decoded.
func (s *Server) guard(x *exchange, r *http.Request, next http.Handler) {
	h := x.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	who, err := s.identify(r)
	if err != nil {
		s.door.out(r, err)
		writeProblem(x, err)
		return
	}
	x.who = who
	next.ServeHTTP(x, r)
}

// identify tells who sends a request, or why it is refused.
func (s *Server) identify(r *http.Request) (caller, error) {
	if err := checkOrigin(r); err != nil {
		return caller{}, err
	}
	secret, sent, err := bearer(r.Header)
	user, socket := r.Context().Value(peerKey{}).(peerUser)
	switch {
	case err != nil:
		return caller{}, err
	case sent:
		t, err := s.queue.Hub.Tokens.FindToken(r.Context(), secret)
		if errors.Is(err, queue.ErrNotFound) {
			return caller{}, unauthorized("unknown_token", "this token is not known: it was removed, or "+
				"mistyped; make one on the server with `muster token create NAME`")
		}
		return caller{name: t.Name}, problem(err)
	case socket:
		return localCaller(r, user, s.cfg.Claims)
	}
	if fromHere(r) {
		if err := checkHost(r); err != nil {
			return caller{}, err
		}
	}
	if r.URL.Path == healthPath {
		return caller{}, nil
	}
	return caller{}, unauthorized("no_token", "a token is needed here: set MUSTER_TOKEN; make one on "+
		"the server's machine, over its unix socket, with `muster token create NAME`")
}

// fromHere reports whether a request came over the loopback of this machine.
func fromHere(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}

// bearer reads the token of a request; sent tells whether there is any.
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

// denial is why somebody is kept out. Its reason is one of few words, for a metric.
type denial struct {
	error
	reason string
}

// Unwrap is the answer.
func (d *denial) Unwrap() error { return d.error }

// challenges are the codes of RFC 6750 of those reasons that have one.
var challenges = map[string]string{"unknown_token": "invalid_token", "malformed": "invalid_request"}

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

// checkHost is about requests over loopback without a token. They may come from a page of some
// other site, in a browser on this machine, under a name that was made to mean 127.0.0.1.
func checkHost(r *http.Request) error {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host != "localhost" && !isLoopback(strings.Trim(host, "[]")) {
		return forbidden("foreign_page", "host %q is not this machine: without a token call 127.0.0.1, "+
			"[::1] or localhost", clip(r.Host))
	}
	return nil
}

// checkOrigin refuses what a browser sends for a page of another site, whoever the caller is: also
// with a token, and through whatever passes requests on to the socket.
func checkOrigin(r *http.Request) error {
	if from := r.Header.Get("Origin"); from != "" {
		if u, err := url.Parse(from); err != nil || u.Host != r.Host {
			return forbidden("foreign_page", "a page of %q may not call this: only programs may, and the "+
				"server's own pages", clip(from))
		}
	}
	// What follows lets pages of other origins read.
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return forbidden("foreign_page", "a page of another site may not call this")
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return forbidden("foreign_page", "a page of another site may not call this: %s", err)
	}
	return nil
}

// operator is who a request comes from; proven: as a token or the kernel says. as is what the
// body says, header what the header says.
func operator(who caller, as, header string) (name string, proven bool, err error) {
	said := cmp.Or(as, header)
	switch {
	case who.name == "":
		return "", false, errors.New("nobody says who asks: a token is needed")
	case !who.local:
		if as != "" && as != who.name {
			return "", false, fmt.Errorf("the token is of %s: leave `as` out, or use %s's token",
				who.name, clip(as))
		}
		return who.name, true, nil
	case said == "" || said == who.name:
		return who.name, true, nil
	case !who.claims && localPrefix+said == who.name:
		return who.name, true, nil
	case !who.claims:
		return "", false, fmt.Errorf("a name can be chosen in `muster demo` only; here you are %s, as "+
			"the kernel says: leave `as` out, or use %s's token", who.name, clip(said))
	}
	if err := fleet.CheckName(said); err != nil {
		return "", false, fmt.Errorf("operator: %w", err)
	}
	return said, false, nil
}

// clip shortens hostile input for a message.
func clip(s string) string { return wording.Clip(s) }
