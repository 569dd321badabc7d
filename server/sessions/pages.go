package sessions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/audit"
	"muster/server/idp"
	"muster/server/scribe"
	"muster/server/web"
)

// Pages are the pages of the login. They work without any script.
type Pages struct {
	Book  *Book
	Audit *scribe.Scribe // nil: none
	Log   hclog.Logger
	Home  string // page after the login; empty: that of the login

	// Provider is asked who somebody is; nil: none is.
	Provider *idp.Provider
	// MayAnything reports whether some grant is for a caller.
	MayAnything func(web.Caller) bool
	// Refused is told of each login that is refused.
	Refused func(r *http.Request, reason string)

	starts *starts
}

// Routes registers the pages.
func (p Pages) Routes(mux *http.ServeMux) {
	p.starts = &starts{}
	p.oidcRoutes(mux)
	mux.HandleFunc("GET "+Path, p.login)
	mux.HandleFunc("GET "+oncePath+"/{secret}", p.ask)
	mux.HandleFunc("POST "+oncePath, p.once)
	mux.HandleFunc("POST "+logoutPath, p.logout)
}

// formMax bounds the body of a form.
const formMax = 16 << 10 // bytes

// login shows who somebody is, or how to become somebody.
func (p Pages) login(w http.ResponseWriter, r *http.Request) {
	who, next := callerOf(w), ownPath(r.URL.Query().Get("next"))
	if who.Name != "" {
		show(w, known(who, next))
		return
	}
	if next != "" && r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		// Browsers send no cookie of ours with a request that another site has begun. The next
		// request is begun by this page.
		show(w, view{Title: "One moment", Words: []string{"This page opens the one that you asked for."},
			Next: next, Go: true})
		return
	}
	v := view{Title: "Log in", Words: []string{"muster does not know this browser.",
		"Where the command line of muster works for you, `muster login --browser` prints a link that " +
			"logs this browser in."}}
	if p.Provider != nil {
		v.Forms = []form{p.leaveForm(next, nil)}
	}
	show(w, v)
}

// known is the page for somebody who has logged in.
func known(who web.Caller, next string) view {
	v := view{Title: "You are logged in", Words: []string{"You are " + who.Name + "."}, Next: next}
	if who.Session != "" {
		v.Words = append(v.Words, "The session ends at "+who.Until.UTC().Format(time.RFC1123)+
			", or when nobody uses it for "+idleMax.String()+".")
		v.Forms = []form{{Action: logoutPath, Button: "Log out"}}
	}
	return v
}

// ask shows whom a link makes of this browser, and a button. Whatever looks at the link before a
// person does, as programs that show previews do, uses nothing up.
func (p Pages) ask(w http.ResponseWriter, r *http.Request) {
	secret := r.PathValue("secret")
	link, err := p.Book.peek(r.Context(), Link, secret)
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	show(w, view{Title: "Log in as " + link.Owner + "?", Words: []string{
		"The link was made by " + link.Owner + " at " + link.Created.UTC().Format(time.RFC1123) +
			". Go on only if that was you."},
		Forms: []form{{oncePath, "Log in", []field{{"secret", secret}}}}})
}

// once uses a link up and begins the session.
func (p Pages) once(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, formMax)
	if !OwnPage(r) {
		p.refuse(w, r, usedLink)
		return
	}
	link, err := p.Book.take(r.Context(), Link, r.PostFormValue("secret"))
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	s := Record{Owner: link.Owner, Proof: link.Proof, Groups: link.Groups, Token: link.Token,
		Parent: link.Parent}
	if err := p.enter(w, r, entry{s, link.Until.Time, "link"}); err != nil {
		p.refuse(w, r, err)
		return
	}
	http.Redirect(w, r, p.home(), http.StatusSeeOther)
}

// home returns the page after a login.
func (p Pages) home() string {
	if p.Home != "" {
		return p.Home
	}
	return Path
}

// entry is a session of a browser that shall begin.
type entry struct {
	record Record
	until  time.Time
	way    string // of the login
}

// enter begins a session of a browser and gives it the cookie. It ends the session that the browser
// has had.
func (p Pages) enter(w http.ResponseWriter, r *http.Request, e entry) error {
	ctx := r.Context()
	e.record.Kind = Browser
	if user := userOf(r); user != nil {
		uid, err := user()
		if err != nil {
			return &Refusal{Moved, "muster cannot tell which user of this machine the browser belongs " +
				"to: " + err.Error()}
		}
		e.record.User = &uid
	}
	end, err := p.Audit.LoggedIn(ctx, scribe.Login{Name: e.record.Owner, Proof: e.record.Proof,
		Way: e.way, From: r.RemoteAddr})
	if err != nil {
		return err
	}
	p.endShown(ctx, r)
	s, secret, err := p.Book.begin(ctx, e.record, e.until)
	if err != nil {
		end(audit.Failed)
		return err
	}
	end(audit.Done)
	p.Log.Info("session begun", "id", s.ID, "owner", s.Owner, "proof", s.Proof, "way", e.way,
		"from", r.RemoteAddr, "expires", s.Expires)
	http.SetCookie(w, userCookie(r, secret, s.Expires.Time))
	return nil
}

// endShown ends the session whose cookie a request has.
func (p Pages) endShown(ctx context.Context, r *http.Request) {
	text, sent := Shows(r)
	if !sent {
		return
	}
	if s, _, err := p.Book.read(ctx, Browser, text); err == nil {
		// One that stays ends by itself; nobody has its cookie any more.
		_ = p.Book.end(ctx, s.ID)
	}
}

// logout ends the session of a browser.
func (p Pages) logout(w http.ResponseWriter, r *http.Request) {
	who := callerOf(w)
	if who.Session != "" {
		if err := p.Book.end(r.Context(), who.Session); err != nil {
			p.refuse(w, r, err)
			return
		}
		p.Log.Info("session ended", "id", who.Session, "owner", who.Name)
	}
	http.SetCookie(w, userCookie(r, "", time.Unix(0, 0)))
	http.Redirect(w, r, Path, http.StatusSeeOther)
}

// refuse shows why a login comes to nothing.
func (p Pages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	v := view{Title: "Not logged in", Status: http.StatusServiceUnavailable,
		Words: []string{"muster cannot do this now: " + err.Error()}}
	reason := reasonOf(err)
	var who *stranger
	switch {
	case errors.As(err, &who):
		p.Refused(r, reason)
		v.Status, v.Names = http.StatusForbidden, who.names()
		v.Words = []string{"You are " + who.who.Principal + ", and may do nothing here: the access " +
			"file has no grant for this name or its groups. Your groups are:"}
	case reason != "":
		p.Refused(r, reason)
		v.Status, v.Words = http.StatusForbidden, []string{err.Error()}
	case errors.Is(err, errKeyless):
		v.Status, v.Words = http.StatusConflict, []string{errKeyless.Error()}
	default:
		p.Log.Error("login failed", "error", fmt.Sprint(err))
	}
	show(w, v)
}
