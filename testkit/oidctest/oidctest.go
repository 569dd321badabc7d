// Package oidctest is an identity provider for tests: it speaks discovery, JWKS, the code flow with
// PKCE and the device grant over HTTP, and signs with real keys. A test can have it lie.
package oidctest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// The client that a provider knows.
const (
	ClientID = "muster-test"
	Secret   = "the secret of the client"
)

// Provider is an identity provider. It asks nobody for a password.
type Provider struct {
	URL string // its issuer

	mu      sync.Mutex
	rsa     *rsa.PrivateKey
	ec      *ecdsa.PrivateKey
	claims  map[string]any
	lies    Lies
	codes   map[string]*login
	devices map[string]*login // by the code of the server
	asked   int
}

// Lies has the lies of a provider. The zero value is an honest one.
type Lies struct {
	Alg      string // of signatures: RS256 if it is empty, ES256, HS256 by the secret, none
	Stranger bool   // signs with a key that is not in its JWKS
	Claims   map[string]any
	Issuer   string         // that the answer to the browser names; "-": none
	Config   map[string]any // of its discovery document
	Error    string         // instead of a code
	NoToken  bool           // it sends no ID token
}

// login is the visit of a person.
type login struct {
	back, challenge, nonce string
	user                   string // code that a person types
	confirmed, denied      bool
	slow                   bool
}

// New starts a provider that knows a person by a subject.
func New(t testing.TB, subject string) *Provider {
	t.Helper()
	p := &Provider{claims: map[string]any{"sub": subject}, codes: map[string]*login{},
		devices: map[string]*login{}}
	var err error
	if p.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if p.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /keys", p.keys)
	mux.HandleFunc("GET /authorize", p.authorize)
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /device", p.device)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	p.URL = s.URL
	return p
}

// Is has the provider know the person by more claims; nil removes one.
func (p *Provider) Is(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.claims, claims)
	maps.DeleteFunc(p.claims, func(_ string, v any) bool { return v == nil })
}

// Lie has the provider lie from now on.
func (p *Provider) Lie(l Lies) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lies = l
}

// Asked returns how often somebody has asked for tokens.
func (p *Provider) Asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// Confirm confirms the login of a device, as a person does who types its code. It reports whether
// there is one.
func (p *Provider) Confirm(user string, yes bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.devices {
		if l.user == user {
			l.confirmed, l.denied = yes, !yes
			return true
		}
	}
	return false
}

// SlowDown has the provider find the next question of a device too early.
func (p *Provider) SlowDown() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.devices {
		l.slow = true
	}
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize",
		"token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"device_authorization_endpoint":                  p.URL + "/device",
		"scopes_supported":                               []string{"openid", "groups"},
		"id_token_signing_alg_values_supported":          []string{"RS256", "ES256", "HS256", "none"},
		"authorization_response_iss_parameter_supported": true,
		"response_types_supported":                       []string{"code"},
		"subject_types_supported":                        []string{"public"}}
	maps.Copy(d, p.lies.Config)
	answer(w, http.StatusOK, d)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	ec, err := p.ec.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	answer(w, http.StatusOK, map[string]any{"keys": []map[string]any{
		{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "r1", "n": b64(p.rsa.N.Bytes()),
			"e": b64(big.NewInt(int64(p.rsa.E)).Bytes())},
		{"kty": "EC", "use": "sig", "alg": "ES256", "kid": "e1", "crv": "P-256", "x": b64(ec[1:33]),
			"y": b64(ec[33:])}}})
}

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("response_type") != "code" ||
		q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" {
		http.Error(w, "this is no request of the code flow with PKCE: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := url.Values{"state": {q.Get("state")}, "iss": {p.URL}}
	switch p.lies.Issuer {
	case "":
	case "-":
		out.Del("iss")
	default:
		out.Set("iss", p.lies.Issuer)
	}
	if p.lies.Error != "" {
		out.Set("error", p.lies.Error)
	} else {
		code := rand.Text()
		p.codes[code] = &login{back: q.Get("redirect_uri"), challenge: q.Get("code_challenge"), nonce: q.Get("nonce")}
		out.Set("code", code)
	}
	back.RawQuery = out.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// token gives tokens for a code, once, or for a device that a person has confirmed.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	id, secret, basic := r.BasicAuth()
	id, _ = url.QueryUnescape(id)
	secret, _ = url.QueryUnescape(secret)
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if id != ClientID || secret != Secret {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		l := p.codes[r.PostFormValue("code")]
		delete(p.codes, r.PostFormValue("code"))
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if l == nil || l.back != r.PostFormValue("redirect_uri") || b64(sum[:]) != l.challenge {
			refuse(w, http.StatusBadRequest, "invalid_grant")
			return
		}
		p.give(w, l)
	case "urn:ietf:params:oauth:grant-type:device_code":
		l := p.devices[r.PostFormValue("device_code")]
		switch {
		case l == nil:
			refuse(w, http.StatusBadRequest, "expired_token")
		case l.slow:
			l.slow = false
			refuse(w, http.StatusBadRequest, "slow_down")
		case l.denied:
			refuse(w, http.StatusBadRequest, "access_denied")
		case !l.confirmed:
			refuse(w, http.StatusBadRequest, "authorization_pending")
		default:
			delete(p.devices, r.PostFormValue("device_code"))
			p.give(w, l)
		}
	default:
		refuse(w, http.StatusBadRequest, "unsupported_grant_type")
	}
}

func (p *Provider) device(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.PostFormValue("client_id") != ClientID || r.PostFormValue("client_secret") != Secret {
		refuse(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	code, user := rand.Text(), rand.Text()[:8]
	p.devices[code] = &login{user: user}
	answer(w, http.StatusOK, map[string]any{"device_code": code, "user_code": user, "expires_in": 600,
		"verification_uri": p.URL + "/activate", "interval": 1})
}

// give answers with the tokens of a login.
func (p *Provider) give(w http.ResponseWriter, l *login) {
	now := time.Now()
	claims := map[string]any{"iss": p.URL, "aud": ClientID, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	if l.nonce != "" {
		claims["nonce"] = l.nonce
	}
	maps.Copy(claims, p.claims)
	maps.Copy(claims, p.lies.Claims)
	out := map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "id_token": p.sign(claims)}
	if p.lies.NoToken {
		delete(out, "id_token")
	}
	answer(w, http.StatusOK, out)
}

// sign returns claims as a JWT.
func (p *Provider) sign(claims map[string]any) string {
	alg, kid := p.lies.Alg, "r1"
	switch alg {
	case "":
		alg = "RS256"
	case "ES256":
		kid = "e1"
	}
	text := b64(mustJSON(map[string]any{"alg": alg, "kid": kid, "typ": "JWT"})) + "." + b64(mustJSON(claims))
	sum := sha256.Sum256([]byte(text))
	var sig []byte
	var err error
	switch alg {
	case "RS256":
		key := p.rsa
		if p.lies.Stranger {
			key, _ = rsa.GenerateKey(rand.Reader, 2048)
		}
		sig, err = rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	case "ES256":
		var r, s *big.Int
		if r, s, err = ecdsa.Sign(rand.Reader, p.ec, sum[:]); err == nil {
			sig = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}
	case "HS256":
		mac := hmac.New(sha256.New, []byte(Secret))
		mac.Write([]byte(text))
		sig = mac.Sum(nil)
	}
	if err != nil {
		panic(err)
	}
	return text + "." + b64(sig)
}

func refuse(w http.ResponseWriter, status int, code string) {
	answer(w, status, map[string]any{"error": code, "error_description": "a test says so"})
}

func answer(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(mustJSON(what))
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
