package api

import "muster/jobs"

// LoginLink is the answer of POST /v1/login/links.
type LoginLink struct {
	URL       string    `json:"url" doc:"works once"`
	Principal string    `json:"principal" doc:"who the browser will be"`
	Expires   jobs.Time `json:"expires"`
}

// SessionInfo is the stored record of a session, or of a link that begins one.
type SessionInfo struct {
	ID      string    `json:"id"`
	Kind    string    `json:"kind" doc:"browser, program, link or code"`
	Owner   string    `json:"owner"`
	Proof   string    `json:"proof" doc:"what proved the owner: socket, token, certificate, oidc"`
	Token   string    `json:"token,omitempty" doc:"id of the token by which it was begun"`
	Created jobs.Time `json:"created"`
	Expires jobs.Time `json:"expires"`
	Used    jobs.Time `json:"used"`
	Wrong   string    `json:"wrong,omitempty" doc:"why it proves nobody"`
}

// SessionList is the answer of GET /v1/sessions.
type SessionList struct {
	Sessions []SessionInfo `json:"sessions"`
}
