package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/access"
	"muster/fleet"
	"muster/internal/wording"
)

// A Caller is the user behind a request, named by a token, a certificate or the kernel.
type Caller struct {
	Name    string        // the principal: os:USER, cert:NAME, the owner of a token; empty: none
	Token   string        // id of the token that proves it; empty: there is none
	Session string        // id of the session that proves it; empty: there is none
	Until   time.Time     // when that token, session or certificate ends
	Groups  []string      // such as os-group:ops, as policies name them
	Scope   *access.Scope // of the token; nil: it may do what its owner may
	Local   bool          // over a unix socket, without a token
	Admin   bool          // has the right to admin
	Claims  bool          // may say another name
}

// Proof returns the word for what proves the name: socket, token, session or certificate; empty:
// nothing does.
func (c Caller) Proof() string {
	switch {
	case c.Name == "":
		return ""
	case c.Local:
		return "socket"
	case c.Token != "":
		return "token"
	case c.Session != "":
		return "session"
	}
	return "certificate"
}

// Trusted reports whether the caller may read more than the one word of our health.
func (c Caller) Trusted() bool { return c.Name != "" }

// An Exchange is the answer to a request while it is written, with its caller.
type Exchange struct {
	http.ResponseWriter
	Who    Caller
	Again  func() (Caller, error) // identifies the caller once more, while the request lasts
	Status int                    // 0: nothing is written yet
}

// WriteHeader writes the head of the answer and keeps its status.
func (x *Exchange) WriteHeader(status int) {
	if x.Status == 0 {
		x.Status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the answer.
func (x *Exchange) Write(b []byte) (int, error) {
	if x.Status == 0 {
		x.Status = http.StatusOK
	}
	return x.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController through.
func (x *Exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// OSPrefix begins the name of a user of this machine.
const OSPrefix = "os:"

// Asked is the part of an input that knows the caller. Routes embed it.
type Asked struct{ who Caller }

// Resolve reads it from the exchange, where no client can write it.
func (a *Asked) Resolve(ctx huma.Context) []error {
	_, w := humago.Unwrap(ctx)
	x, ok := w.(*Exchange)
	if !ok {
		return []error{huma.Error500InternalServerError("nobody has looked at who asks")}
	}
	a.who = x.Who
	return nil
}

// Caller returns the user behind the request.
func (a Asked) Caller() Caller { return a.who }

// Operator returns the name of the operator who sends a request. It is proven if a token or the
// kernel gave it. The caller may claim a name in the body (as) or in a header.
func Operator(who Caller, as, header string) (name string, proven bool, err error) {
	said := cmp.Or(as, header)
	switch {
	case who.Name == "":
		return "", false, errors.New("nobody says who asks: a token is needed")
	case !who.Local:
		if as != "" && as != who.Name {
			return "", false, fmt.Errorf("you are %s: leave `as` out, or use a token of %s",
				who.Name, Clip(as))
		}
		return who.Name, true, nil
	case said == "" || said == who.Name:
		return who.Name, true, nil
	case !who.Claims && OSPrefix+said == who.Name:
		return who.Name, true, nil
	case !who.Claims:
		return "", false, fmt.Errorf("a name can be chosen in `muster demo` only; here you are %s, as "+
			"the kernel says: leave `as` out, or use %s's token", who.Name, Clip(said))
	}
	if err := fleet.CheckName(said); err != nil {
		return "", false, fmt.Errorf("operator: %w", err)
	}
	return said, false, nil
}

// Clip shortens hostile input for a message.
func Clip(s string) string { return wording.Clip(s) }
