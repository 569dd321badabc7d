package secrets

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A bao is a server that speaks the API of Vault and OpenBao as its documentation has it: logins by
// AppRole and JWT, tokens that end, renewals, the KV store version 2, and its errors. No real one can
// be installed here.
type bao struct {
	*httptest.Server
	t testing.TB

	mu       sync.Mutex
	now      time.Time
	secretID string
	jwt      string
	lease    time.Duration
	sealed   bool
	elsed    string // answers with a redirect to this place
	deaf     bool   // takes no new connections in time
	says     string // in place of its own error
	tokens   map[string]time.Time
	data     map[string]map[string]any // by mount/path
	calls    []string
}

func newBao(t testing.TB) *bao {
	t.Helper()
	b := &bao{t: t, now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC), secretID: "s.e.c.r.e.t-id", jwt: "eyJhbGciOi.x.y",
		lease: time.Hour, tokens: map[string]time.Time{}, data: map[string]map[string]any{}}
	b.Server = httptest.NewTLSServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *bao) time() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

// after lets time pass.
func (b *bao) after(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// do changes the server.
func (b *bao) do(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

// called returns the calls since the last question.
func (b *bao) called() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := strings.Join(b.calls, " ")
	b.calls = nil
	return text
}

func (b *bao) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, r.Method+strings.TrimPrefix(r.URL.Path, "/v1"))
	refuse := func(status int, words ...string) {
		if b.says != "" {
			words = []string{b.says}
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": words})
	}
	switch {
	case r.Header.Get("X-Vault-Request") != "true":
		refuse(http.StatusPreconditionFailed, "missing required header")
		return
	case b.elsed != "":
		w.Header().Set("Location", b.elsed+r.URL.Path)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	case b.sealed:
		refuse(http.StatusServiceUnavailable, "Vault is sealed")
		return
	}
	var body map[string]string
	_ = json.NewDecoder(r.Body).Decode(&body)
	switch r.URL.Path {
	case "/v1/auth/approle/login":
		if body["role_id"] != "the-role" || body["secret_id"] != b.secretID {
			refuse(http.StatusBadRequest, "invalid role or secret ID")
			return
		}
		b.issue(w)
		return
	case "/v1/auth/k8s/dc1/login":
		if body["role"] != "muster" || body["jwt"] != b.jwt {
			refuse(http.StatusBadRequest, `error validating token`)
			return
		}
		b.issue(w)
		return
	}
	token := r.Header.Get("X-Vault-Token")
	if end, ok := b.tokens[token]; !ok || !b.now.Before(end) {
		refuse(http.StatusForbidden, "permission denied", "invalid token")
		return
	}
	b.serve(w, r, token, refuse)
}

// serve answers a call with a good token.
func (b *bao) serve(w http.ResponseWriter, r *http.Request, token string, refuse func(int, ...string)) {
	switch r.URL.Path {
	case "/v1/auth/token/renew-self":
		b.tokens[token] = b.now.Add(b.lease)
		b.auth(w, token)
		return
	case "/v1/auth/token/revoke-self":
		delete(b.tokens, token)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	path := strings.Replace(strings.TrimPrefix(r.URL.Path, "/v1/"), "/data/", "/", 1)
	fields, ok := b.data[path]
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

func (b *bao) issue(w http.ResponseWriter) {
	token := "hvs.token-" + string(rune('A'+len(b.tokens)))
	b.tokens[token] = b.now.Add(b.lease)
	b.auth(w, token)
}

func (b *bao) auth(w http.ResponseWriter, token string) {
	_ = json.NewEncoder(w).Encode(map[string]any{"auth": map[string]any{"client_token": token,
		"lease_duration": int(b.lease.Seconds()), "renewable": true}})
}

// settings writes the files of a node, and returns its settings.
func (b *bao) settings() *Vault {
	b.t.Helper()
	dir := b.t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.Certificate().Raw})
	for name, text := range map[string]string{"ca": string(ca), "role": "the-role\n",
		"secret": b.secretID + "\n", "jwt": b.jwt} {
		write(b.t, filepath.Join(dir, name), text, 0o400)
	}
	return &Vault{Address: b.URL, CA: dir + "/ca", Timeout: 5 * time.Second, Mounts: []string{"team/kv"},
		Login: "approle", Mount: "approle", RoleID: dir + "/role", Secret: dir + "/secret"}
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	_ = os.Remove(path)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
