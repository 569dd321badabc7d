package api

import "muster/jobs"

// TokenRequest is the body of POST /v1/tokens.
type TokenRequest struct {
	Name  string `json:"name"`            // unique among those of the owner
	Owner string `json:"owner,omitempty"` // a principal, such as user:bob; empty: whoever asks
	Life  string `json:"life,omitempty"`  // such as 12h or 90d, which is usual

	// Scope narrows what the token may do; not set: all that its owner may.
	Scope *TokenScope `json:"scope,omitempty"`
}

// TokenScope is the part of its owner's rights that a token has.
type TokenScope struct {
	Verbs    []string `json:"verbs"`              // such as see; none: all
	Runbooks []string `json:"runbooks,omitempty"` // names and globs; none: all
	Hosts    string   `json:"hosts,omitempty"`    // a selector; empty: all
}

// TokenAnswer holds a new token, which is shown once and stored hashed.
type TokenAnswer struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Owner   string    `json:"owner"`
	Expires jobs.Time `json:"expires"`
	Token   string    `json:"token"`
}

// TokenInfo is the stored record of a token.
type TokenInfo struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Owner   string    `json:"owner"` // the principal in whose name it acts
	Maker   string    `json:"maker"` // the principal who made it
	Created jobs.Time `json:"created"`
	Expires jobs.Time `json:"expires"`
	Used    jobs.Time `json:"used"` // about when last; null: it is not known

	Scope *TokenScope `json:"scope,omitempty"` // not set: all that its owner may

	// Wrong says why the token authenticates nobody; empty: it does.
	Wrong string `json:"wrong,omitempty"`
}

// TokenList is the answer of GET /v1/tokens.
type TokenList struct {
	Tokens []TokenInfo `json:"tokens"`
}
