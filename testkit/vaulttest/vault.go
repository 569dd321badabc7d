// Package vaulttest is a server for tests that speaks the API of Vault and OpenBao as its documentation
// has it: logins by AppRole and JWT, tokens that end, renewals, the KV store version 2, and its errors.
// No real one can be installed where the tests run.
package vaulttest

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// The role that can log in: by AppRole, or by the login for JWT at JWTMount.
const (
	RoleID   = "the-role"
	JWTRole  = "muster"
	JWTMount = "k8s/dc1"
)

// A Server is a pretended Vault with TLS. Change its fields within Do.
type Server struct {
	*httptest.Server

	SecretID  string // of RoleID
	JWT       string // of JWTRole
	Lease     time.Duration
	Sealed    bool
	Elsewhere string                    // answers with a redirect to this address
	Says      string                    // in place of its own errors
	Tokens    map[string]time.Time      // their ends
	Data      map[string]map[string]any // of the KV store, by mount/path; "closed/" may nobody read

	mu    sync.Mutex
	now   time.Time
	calls []string
}

// Start starts a server with a clock of its own, which stands still.
func Start(t testing.TB) *Server {
	t.Helper()
	b := &Server{now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC), SecretID: "s.e.c.r.e.t-id", JWT: "eyJhbGciOi.x.y",
		Lease: time.Hour, Tokens: map[string]time.Time{}, Data: map[string]map[string]any{}}
	b.Server = httptest.NewUnstartedServer(b)
	b.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that do not know the certificate
	b.StartTLS()
	t.Cleanup(b.Close)
	return b
}

// Now returns the time of the server.
func (b *Server) Now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// After lets time pass.
func (b *Server) After(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// Do changes the server.
func (b *Server) Do(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// Called returns the calls since the last question.
func (b *Server) Called() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.Join(b.calls, " ")
	b.calls = nil
	return text
}

// ServeHTTP answers a call.
func (b *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, r.Method+strings.TrimPrefix(r.URL.Path, "/v1"))
	refuse := func(status int, words ...string) {
		if b.Says != "" {
			words = []string{b.Says}
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": words})
	}
	switch {
	case r.Header.Get("X-Vault-Request") != "true":
		refuse(http.StatusPreconditionFailed, "missing required header")
		return
	case b.Elsewhere != "":
		w.Header().Set("Location", b.Elsewhere+r.URL.Path)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	case b.Sealed:
		refuse(http.StatusServiceUnavailable, "Vault is sealed")
		return
	}
	var body map[string]string
	_ = json.NewDecoder(r.Body).Decode(&body)
	switch r.URL.Path {
	case "/v1/auth/approle/login":
		if body["role_id"] != RoleID || body["secret_id"] != b.SecretID {
			refuse(http.StatusBadRequest, "invalid role or secret ID")
			return
		}
		b.issue(w)
		return
	case "/v1/auth/" + JWTMount + "/login":
		if body["role"] != JWTRole || body["jwt"] != b.JWT {
			refuse(http.StatusBadRequest, `error validating token`)
			return
		}
		b.issue(w)
		return
	}
	token := r.Header.Get("X-Vault-Token")
	if end, ok := b.Tokens[token]; !ok || !b.now.Before(end) {
		refuse(http.StatusForbidden, "permission denied", "invalid token")
		return
	}
	b.serve(w, r, token, refuse)
}

// serve answers a call with a good token.
func (b *Server) serve(w http.ResponseWriter, r *http.Request, token string, refuse func(int, ...string)) {
	switch r.URL.Path {
	case "/v1/auth/token/renew-self":
		b.Tokens[token] = b.now.Add(b.Lease)
		b.auth(w, token)
		return
	case "/v1/auth/token/revoke-self":
		delete(b.Tokens, token)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	path := strings.Replace(strings.TrimPrefix(r.URL.Path, "/v1/"), "/data/", "/", 1)
	fields, ok := b.Data[path]
	switch {
	case r.Method != http.MethodGet || strings.HasPrefix(path, "closed/"):
		refuse(http.StatusForbidden, "1 error occurred:\n\t* permission denied\n\n")
	case !ok:
		refuse(http.StatusNotFound)
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"data": fields,
			"metadata": map[string]any{"version": 3}}})
	}
}

func (b *Server) issue(w http.ResponseWriter) {
	token := fmt.Sprint("hvs.token-of-this-test-", len(b.Tokens))
	b.Tokens[token] = b.now.Add(b.Lease)
	b.auth(w, token)
}

func (b *Server) auth(w http.ResponseWriter, token string) {
	_ = json.NewEncoder(w).Encode(map[string]any{"auth": map[string]any{"client_token": token,
		"lease_duration": int(b.Lease.Seconds()), "renewable": true}})
}

// CA returns the certificate by which clients know the server, in PEM.
func (b *Server) CA() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw}))
}
