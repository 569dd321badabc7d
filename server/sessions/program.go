package sessions

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/audit"
	"muster/jobs"
	"muster/server/idp"
	"muster/server/scribe"
	"muster/server/web"
)

// starts bounds how often strangers have the server ask the provider for a login by device.
type starts struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

const startsMax = 30 // a minute

// may counts a start, and reports whether it may be.
func (s *starts) may(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.since) >= time.Minute {
		s.since, s.n = now, 0
	}
	s.n++
	return s.n <= startsMax
}

// body reads the body of a request of a program.
func body[T any](w http.ResponseWriter, r *http.Request) (in T, ok bool) {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, formMax)).Decode(&in)
	if err != nil {
		web.WriteProblem(w, huma.Error400BadRequest("want JSON, as `muster login` sends it"))
	}
	return in, err == nil
}

// say answers a program.
func say(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A program that does not read it has gone.
	_ = json.NewEncoder(w).Encode(what)
}

// programToken gives a session for the code that the browser has brought to a program.
func (p Pages) programToken(w http.ResponseWriter, r *http.Request) {
	in, ok := body[api.LoginCode](w, r)
	if !ok {
		return
	}
	code, err := p.Book.take(r.Context(), Code, in.Code)
	if err == nil && !proves(in.Verifier, code.Challenge) {
		err = usedLink
	}
	if err != nil {
		p.refuseProgram(w, r, err)
		return
	}
	s := Record{Owner: code.Owner, Proof: code.Proof, Groups: code.Groups}
	p.giveSession(w, r, entry{record: s, way: "oidc-program"})
}

// giveSession begins the session of a program that has logged in by a way, and answers with its
// secret.
func (p Pages) giveSession(w http.ResponseWriter, r *http.Request, e entry) {
	s, way := e.record, e.way
	s.Kind = Program
	end, err := p.Audit.LoggedIn(r.Context(), scribe.Login{Name: s.Owner, Proof: s.Proof, Way: way,
		From: r.RemoteAddr})
	if err != nil {
		p.refuseProgram(w, r, err)
		return
	}
	s, secret, err := p.Book.begin(r.Context(), s, e.until)
	if err != nil {
		end(audit.Failed)
		p.refuseProgram(w, r, err)
		return
	}
	end(audit.Done)
	p.Log.Info("session begun", "id", s.ID, "owner", s.Owner, "proof", s.Proof, "way", way,
		"from", r.RemoteAddr, "expires", s.Expires)
	say(w, http.StatusOK, api.LoginToken{Token: secret, Session: s.ID, Principal: s.Owner,
		Expires: s.Expires})
}

// device begins a login that somebody confirms on another machine.
func (p Pages) device(w http.ResponseWriter, r *http.Request) {
	keys, err := p.Book.usable()
	switch {
	case err != nil:
	case p.Provider == nil:
		err = errNoProvider
	case !p.starts.may(p.Book.now()):
		err = huma.Error429TooManyRequests("too many logins begin here: try again in a minute")
	}
	if err != nil {
		p.refuseProgram(w, r, err)
		return
	}
	d, err := p.Provider.BeginDevice(r.Context())
	if err != nil {
		p.refuseProgram(w, r, err)
		return
	}
	handle, err := vouch(keys, "device", d)
	if err != nil {
		p.refuseProgram(w, r, err)
		return
	}
	say(w, http.StatusOK, api.LoginDevice{Handle: handle, UserCode: d.User, URL: d.At,
		WholeURL: d.Whole, Interval: d.Interval, Expires: jobs.Time{Time: d.Until}})
}

// errNoProvider is the refusal of logins on a server without an identity provider.
var errNoProvider = huma.Error409Conflict("this server asks no identity provider (server.oidc), " +
	"so nobody logs in there: use a token (MUSTER_TOKEN), or its unix socket")

// deviceToken gives a session once somebody has confirmed the login.
func (p Pages) deviceToken(w http.ResponseWriter, r *http.Request) {
	in, ok := body[api.LoginDevice](w, r)
	if !ok {
		return
	}
	keys, err := p.Book.usable()
	var d idp.Device
	switch {
	case err != nil:
	case p.Provider == nil:
		err = errNoProvider
	case vouched(keys, "device", in.Handle, &d) != nil || !p.Book.now().Before(d.Until):
		err = usedLink
	}
	if err != nil {
		p.refuseProgram(w, r, err)
		return
	}
	who, err := p.Provider.FinishDevice(r.Context(), d)
	var wait *idp.Pending
	if errors.As(err, &wait) {
		if wait.Slower {
			d.Interval += 5
		}
		say(w, http.StatusAccepted, api.LoginDevice{Interval: d.Interval})
		return
	}
	if err == nil {
		err = p.mayEnter(who)
	}
	if err != nil {
		p.refuseProgram(w, r, err)
		return
	}
	s := Record{Owner: who.Principal, Proof: "oidc", Groups: who.Groups}
	p.giveSession(w, r, entry{record: s, way: "oidc-device"})
}

// refuseProgram answers a program whose login comes to nothing.
func (p Pages) refuseProgram(w http.ResponseWriter, r *http.Request, err error) {
	if reason := reasonOf(err); reason != "" {
		p.Refused(r, reason)
		web.WriteProblem(w, huma.Error403Forbidden(err.Error()))
		return
	}
	if idp.IsAway(err) {
		p.Log.Error("login failed", "error", err.Error())
		web.WriteProblem(w, huma.Error503ServiceUnavailable(err.Error()))
		return
	}
	web.WriteProblem(w, answerOf(err))
}

// reasonOf returns the reason of a refusal; empty: the error is none.
func reasonOf(err error) string {
	var no *Refusal
	var theirs *idp.Refusal
	var unknown *stranger
	switch {
	case errors.As(err, &no):
		return no.Reason
	case errors.As(err, &theirs):
		return theirs.Reason
	case errors.As(err, &unknown):
		return Grantless
	}
	return ""
}
