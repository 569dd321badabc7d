package sessions

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"muster/server/idp"
	"muster/server/web"
)

// The paths of logins with an identity provider.
const (
	oidcPath    = Path + "/oidc"
	programPath = Path + "/program"
	devicePath  = Path + "/device"
)

// oidcRoutes registers what logins with an identity provider need.
func (p Pages) oidcRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST "+oidcPath, p.leave)
	mux.HandleFunc("GET "+idp.CallbackPath, p.comeBack)
	mux.HandleFunc("GET "+programPath, p.askForProgram)
	mux.HandleFunc("POST "+programPath+"/token", p.programToken)
	mux.HandleFunc("POST "+devicePath, p.device)
	mux.HandleFunc("POST "+devicePath+"/token", p.deviceToken)
}

// leaveForm is the button that leads to the identity provider.
func (p Pages) leaveForm(next string, of *program) form {
	f := form{Action: oidcPath, Button: "Log in with " + p.Provider.Name(), Fields: of.fields()}
	if next != "" {
		f.Fields = append(f.Fields, field{"next", next})
	}
	return f
}

// askForProgram asks whether a command line on this machine may act for who logs in now.
func (p Pages) askForProgram(w http.ResponseWriter, r *http.Request) {
	of := readProgram(r.URL.Query().Get)
	if p.Provider == nil || of == nil {
		show(w, view{Title: "Not logged in", Status: http.StatusBadRequest, Words: []string{
			"This is no link of `muster login`, or this server asks no identity provider " +
				"(server.oidc)."}})
		return
	}
	show(w, view{Title: "Log the command line in?", Words: []string{
		"`muster login` on this machine (port " + strconv.Itoa(of.Port) + ") asks to act as you.",
		"Go on only if you have just called it, and it shows the word " + CheckWord(of.Challenge) + "."},
		Forms: []form{p.leaveForm("", of)}})
}

// leave begins a login and sends the browser to the identity provider. It does so by a page: the
// provider may send the browser on, and no policy for forms could name all those places.
func (p Pages) leave(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, formMax)
	if !OwnPage(r) || p.Provider == nil {
		p.refuse(w, r, unknown)
		return
	}
	keys, err := p.Book.usable()
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	of := readProgram(r.PostFormValue)
	if of == nil && r.PostFormValue("port") != "" {
		p.refuse(w, r, unknown)
		return
	}
	begun, at, err := p.Provider.Begin(r.Context())
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	text, err := vouch(keys, "flow", flow{Flow: begun, Next: ownPath(r.PostFormValue("next")),
		Program: of, Until: p.Book.now().Add(flowLife)})
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	http.SetCookie(w, flowCookie(r, text))
	show(w, view{Title: "One moment", Words: []string{"This page opens " + p.Provider.Name() + "."},
		Next: at, Go: true})
}

// comeBack finishes a login with what the identity provider has given to the browser.
func (p Pages) comeBack(w http.ResponseWriter, r *http.Request) {
	f, err := p.Book.flowOf(r)
	if err == nil && p.Provider == nil {
		err = unknown
	}
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	http.SetCookie(w, flowCookie(r, ""))
	who, err := p.Provider.Finish(r.Context(), f.Flow, r.URL.Query())
	if err == nil {
		err = p.mayEnter(who)
	}
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	s := Record{Owner: who.Principal, Proof: "oidc", Groups: who.Groups}
	if f.Program != nil {
		p.sendToProgram(w, r, s, *f.Program)
		return
	}
	if err := p.enter(w, r, entry{record: s, way: "oidc"}); err != nil {
		p.refuse(w, r, err)
		return
	}
	// The provider has begun this request, so the browser sends the new cookie with the next one.
	next := f.Next
	if next == "" {
		next = p.home()
	}
	show(w, view{Title: "You are logged in", Words: []string{"You are " + who.Principal + "."},
		Next: next, Go: true})
}

// sendToProgram sends the browser to the command line that waits, with a code that works once.
func (p Pages) sendToProgram(w http.ResponseWriter, r *http.Request, s Record, of program) {
	s.Kind, s.Challenge = Code, of.Challenge
	_, code, err := p.Book.add(r.Context(), s, linkLife, s.Until.Time)
	if err != nil {
		p.refuse(w, r, err)
		return
	}
	q := url.Values{"code": {code}, "state": {of.State}}
	http.Redirect(w, r, fmt.Sprintf("http://127.0.0.1:%d/?%s", of.Port, q.Encode()),
		http.StatusSeeOther)
}

// groupsShown bounds the groups that a refusal names.
const groupsShown = 50

// A stranger is somebody whom the provider has proven, and who may do nothing here.
type stranger struct{ who idp.Person }

// Error says what to put into the access file.
func (s *stranger) Error() string {
	words := s.who.Principal + " may do nothing here: the access file has no grant for this name or " +
		"its groups"
	for _, line := range s.names() {
		words += "; " + line
	}
	return words
}

// names says which groups came, and which of them are mapped.
func (s *stranger) names() []string {
	if s.who.None {
		return []string{"the identity provider has sent no claim " + s.who.Claim}
	}
	if len(s.who.Came) == 0 {
		return []string{"the claim " + s.who.Claim + " has no group"}
	}
	out := []string{}
	for _, group := range s.who.Groups {
		out = append(out, group+" (mapped by server.oidc.groups, without a grant)")
	}
	for i, name := range s.who.Unmapped {
		if i == groupsShown {
			out = append(out, fmt.Sprintf("%d more", len(s.who.Unmapped)-i))
			break
		}
		out = append(out, web.Clip(name)+" (came, and is not mapped by server.oidc.groups)")
	}
	return out
}

// mayEnter returns an error unless some grant is for a person.
func (p Pages) mayEnter(who idp.Person) error {
	if p.MayAnything(web.Caller{Name: who.Principal, Groups: who.Groups}) {
		return nil
	}
	p.Log.Warn("login without a grant", "principal", who.Principal, "mapped", who.Groups, "unmapped",
		len(who.Unmapped))
	return &stranger{who}
}
