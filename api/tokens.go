package api

import "muster/jobs"

// TokenRequest is the body of POST /v1/tokens.
type TokenRequest struct {
	Name string `json:"name"`
}

// TokenAnswer holds a new token, which is shown once and stored hashed.
type TokenAnswer struct {
	Name  string `json:"name"`
	Token string `json:"token"`
}

// TokenInfo is the stored record of a token.
type TokenInfo struct {
	Name    string    `json:"name"`
	Created jobs.Time `json:"created"` // null: not known

	// Wrong says why the token authenticates nobody; empty: it does.
	Wrong string `json:"wrong,omitempty"`
}

// TokenList is the answer of GET /v1/tokens.
type TokenList struct {
	Tokens []TokenInfo `json:"tokens"`
}
