package api

import "muster/jobs"

// Whoami is the answer of GET /v1/whoami: who the server takes the caller for, and why.
type Whoami struct {
	Principal string    `json:"principal"`         // such as os:alice or user:bob
	Proof     string    `json:"proof"`             // socket, token or certificate
	Token     string    `json:"token,omitempty"`   // id of the token
	Session   string    `json:"session,omitempty"` // id of the session
	Expires   jobs.Time `json:"expires,omitempty"` // when the token or certificate ends; null: never
	Groups    []string  `json:"groups"`            // such as os-group:ops
	Verbs     []string  `json:"verbs"`             // all that the caller may do somewhere
	Admin     bool      `json:"admin"`             // may do everything: makes tokens of others, too
}
