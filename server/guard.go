package server

import (
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
	"muster/jobs/queue"
)

// UserHeader names the user of the operating system who calls. It counts only
// where no token proves a name.
const UserHeader = "X-Muster-User"

const (
	healthPath = "/v1/health"
	// secretMax bounds what is hashed and looked up as a token.
	secretMax = 200 // bytes
)

// caller is who asks.
type caller struct {
	token string // name of the token that was sent; empty: none was
	local bool   // over loopback or a unix socket
}

// trusted tells whether the caller may know more than whether we are well.
func (c caller) trusted() bool { return c.local || c.token != "" }

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
		writeProblem(x, err)
		return
	}
	x.who = who
	next.ServeHTTP(x, r)
}

// identify tells who sends a request, or why it is refused.
func (s *Server) identify(r *http.Request) (caller, error) {
	socket, local := origin(r)
	who := caller{local: local}
	secret, sent, err := bearer(r.Header)
	switch {
	case err != nil:
		return who, err
	case sent:
		t, err := s.queue.FindToken(r.Context(), secret)
		if errors.Is(err, queue.ErrNotFound) {
			return who, unauthorized("invalid_token", "this token is not known: it was removed, or "+
				"mistyped; make one on the server with `muster token create NAME`")
		}
		who.token = t.Name
		return who, problem(err)
	case local:
		return who, checkLocal(r, socket)
	case r.URL.Path == healthPath:
		return who, nil
	}
	return who, unauthorized("", "a token is needed from beyond the server's own machine: "+
		"set MUSTER_TOKEN; make one there with `muster token create NAME`")
}

// origin tells whether a request came over a unix socket, and whether it came
// from this machine.
func origin(r *http.Request) (socket, local bool) {
	if a, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && a.Network() == "unix" {
		return true, true
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return false, err == nil && from.Addr().Unmap().IsLoopback()
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
		return "", true, unauthorized("invalid_request", "want one header `Authorization: Bearer TOKEN`")
	}
	return secret, true, nil
}

func unauthorized(code, words string) error {
	challenge := `Bearer realm="muster"`
	if code != "" {
		challenge += fmt.Sprintf(`, error="%s"`, code)
	}
	return huma.ErrorWithHeaders(huma.Error401Unauthorized(words),
		http.Header{"Www-Authenticate": {challenge}})
}

// checkLocal is about requests from this machine without a token. They may come
// from a person here, and just as well from anywhere through a proxy or, where no
// unix socket keeps browsers out, from a page of some other site.
func checkLocal(r *http.Request, socket bool) error {
	marks := []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}
	for _, name := range marks {
		if r.Header.Get(name) != "" {
			return unauthorized("", "this came through a proxy (it has a header "+name+
				"): a token is needed")
		}
	}
	if socket {
		return nil
	}
	// A name of somebody else's that was made to mean 127.0.0.1 is no excuse.
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host != "localhost" && !isLoopback(strings.Trim(host, "[]")) {
		return huma.Error403Forbidden(fmt.Sprintf("host %q is not this machine: without a token call "+
			"127.0.0.1, [::1] or localhost", clip(r.Host)))
	}
	if from := r.Header.Get("Origin"); from != "" {
		if u, err := url.Parse(from); err != nil || u.Host != r.Host {
			return huma.Error403Forbidden(fmt.Sprintf("a page of %q may not call this: without a token "+
				"only the server's own pages may", clip(from)))
		}
	}
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		return huma.Error403Forbidden("a page of another site may not call this: " + err.Error())
	}
	return nil
}

// operator is who a request is said to come from, and whether a token proves it.
// as is what the body says.
func operator(who caller, as, user string) (name string, proven bool, err error) {
	switch {
	case who.token != "" && as != "" && as != who.token:
		return "", false, fmt.Errorf("the token is of %s: leave `as` out, or use %s's token",
			who.token, clip(as))
	case who.token != "":
		return who.token, true, nil
	case as != "":
		name = as
	case user != "":
		name = user
	default:
		return "", false, fmt.Errorf("nobody is named who asks: give `as`, a header %s or a token",
			UserHeader)
	}
	if err := fleet.CheckName(name); err != nil {
		return "", false, fmt.Errorf("operator: %w", err)
	}
	return name, false, nil
}

// clip shortens hostile input for a message.
func clip(s string) string {
	if len(s) > 60 {
		return strings.ToValidUTF8(s[:60], "") + "…"
	}
	return s
}
