package people

import (
	"net/http"
	"net/url"
	"slices"

	"muster/api"
	"muster/server/pages/frame"
)

// theSessions lists the sessions that the person may end.
func theSessions(h frame.House, _ *http.Request) (frame.Show, error) {
	var list api.SessionList
	if err := h.Get("/v1/sessions", nil, &list); err != nil {
		return frame.Show{}, err
	}
	return frame.Show{Title: "Sessions", Nav: "Audit", Top: sessionsTop(), Parts: []frame.Part{
		{ID: "sessions", Live: true, Hold: true, Body: sessionTable(list.Sessions)}}}, nil
}

// endSession finds out which session would end.
func endSession(h frame.House, r *http.Request) (frame.Asking, error) {
	id := r.PathValue("session")
	var list api.SessionList
	if err := h.Get("/v1/sessions", nil, &list); err != nil {
		return frame.Asking{}, err
	}
	i := slices.IndexFunc(list.Sessions, func(s api.SessionInfo) bool { return s.ID == id })
	if i < 0 {
		return frame.Asking{}, frame.Refusal(http.StatusNotFound, "there is no session %q that you may "+
			"end", id)
	}
	s := list.Sessions[i]
	a := frame.Asking{Word: "end", Title: "End the session: " + id, Nav: "Audit", Back: "/sessions",
		Method: http.MethodDelete, Path: "/v1/sessions/" + url.PathEscape(id), Stops: true,
		Target: frame.Target{N: 1, Noun: "session", Set: frame.SetOf("end", s.ID, s.Owner, s.Kind)}}
	a.Hit("The %s %s of %s, made at %s, proves nobody from now on. Whoever uses it logs in again; "+
		"work that they have ordered goes on.", kindWords(s.Kind), id, s.Owner,
		s.Created.UTC().Format(frame.TextForm))
	return a, nil
}

// kindWords returns the kind of a session for people.
func kindWords(kind string) string {
	switch kind {
	case "browser", "program":
		return "session of a " + kind
	case "link", "code":
		return kind + " that begins a session"
	}
	return kind
}
