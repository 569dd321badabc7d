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

// LoginCode is the body of POST /login/program/token: what the browser has brought, and the secret
// behind the challenge that the program had it take along.
type LoginCode struct {
	Code     string `json:"code"`
	Verifier string `json:"verifier"`
}

// LoginToken is the session of a program. Its token is sent as those of `muster token create` are.
type LoginToken struct {
	Token     string    `json:"token"`
	Session   string    `json:"session"`
	Principal string    `json:"principal"`
	Expires   jobs.Time `json:"expires"`
}

// LoginDevice is the answer of POST /login/device, and the body of POST /login/device/token, which
// needs the handle only.
type LoginDevice struct {
	Handle   string    `json:"handle,omitempty"`
	UserCode string    `json:"user_code,omitempty"`
	URL      string    `json:"url,omitempty"`
	WholeURL string    `json:"whole_url,omitempty"` // with the code in it
	Interval int       `json:"interval"`            // seconds between two questions
	Expires  jobs.Time `json:"expires"`
}
