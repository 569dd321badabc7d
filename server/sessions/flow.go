package sessions

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"muster/internal/serverkey"
	"muster/server/idp"
)

// flowLife bounds the time that somebody spends at the identity provider.
const flowLife = 10 * time.Minute

// A flow is a login that has begun in a browser. The browser keeps it in a cookie, with a MAC: only
// the browser that has begun a login can finish it.
type flow struct {
	idp.Flow
	Next    string    `json:"next,omitempty"`
	Program *program  `json:"program,omitempty"` // nil: the browser itself logs in
	Until   time.Time `json:"until"`
}

// A program is a command line that waits for a login on the loopback of the browser's machine
// (RFC 8252).
type program struct {
	Port      int    `json:"port"`
	State     string `json:"state"`     // by which it knows its own login
	Challenge string `json:"challenge"` // SHA-256 of a secret that it has, as PKCE does
}

// readProgram reads the parameters of a program; nil: there are none, or they are no program's.
func readProgram(value func(string) string) *program {
	port, err := strconv.Atoi(value("port"))
	p := &program{port, value("state"), value("challenge")}
	sum, bad := base64.RawURLEncoding.Strict().DecodeString(p.Challenge)
	if err != nil || port < 1024 || port > 65535 || bad != nil || len(sum) != sha256.Size ||
		len(p.State) < 20 || len(p.State) > 100 {
		return nil
	}
	return p
}

// fields returns the program for a form.
func (p *program) fields() []field {
	if p == nil {
		return nil
	}
	return []field{{"port", strconv.Itoa(p.Port)}, {"state", p.State}, {"challenge", p.Challenge}}
}

// CheckWord returns a short word of a challenge. The command line and the page show it, so that a
// person sees whether the page belongs to their own command.
func CheckWord(challenge string) string {
	sum := sha256.Sum256([]byte("muster login " + challenge))
	text := base32.StdEncoding.EncodeToString(sum[:])
	return text[:4] + "-" + text[4:8]
}

// proves reports whether a verifier is the secret behind a challenge.
func proves(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	want := base64.RawURLEncoding.EncodeToString(sum[:])
	return challenge != "" && subtle.ConstantTimeCompare([]byte(want), []byte(challenge)) == 1
}

// vouch returns a value as a text with a MAC for one use. Others keep the text for the server.
func vouch(keys serverkey.Keys, use string, v any) (string, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(data)
	return text + " " + keys.MAC(serverkey.Sessions, use, text), nil
}

// vouched reads what vouch returned into a value. It decodes nothing that no server has written.
func vouched(keys serverkey.Keys, use, text string, v any) error {
	data, mac, _ := strings.Cut(text, " ")
	if err := keys.Check(serverkey.Sessions, mac, use, data); err != nil {
		return err
	}
	raw, err := base64.RawURLEncoding.DecodeString(data)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, v)
}

// flowCookie returns the cookie of a flow. It comes back with the browser that the provider sends,
// so it is not strict; it proves nobody.
func flowCookie(r *http.Request, text string) *http.Cookie {
	c := &http.Cookie{Name: cookieName(r) + "-flow", Path: "/", HttpOnly: true,
		Value: strings.Replace(text, " ", "~", 1), Secure: r.TLS != nil,
		SameSite: http.SameSiteLaxMode, MaxAge: int(flowLife.Seconds())}
	if text == "" {
		c.MaxAge = -1
	}
	return c
}

// flowOf returns the flow that a browser has begun.
func (b *Book) flowOf(r *http.Request) (flow, error) {
	var f flow
	keys, err := b.usable()
	if err != nil {
		return f, err
	}
	lost := &Refusal{Unknown, "this browser has begun no login, or it took longer than " +
		fmt.Sprint(flowLife) + ": begin again at " + Path}
	c := r.CookiesNamed(cookieName(r) + "-flow")
	if len(c) != 1 {
		return f, lost
	}
	err = vouched(keys, "flow", strings.Replace(c[0].Value, "~", " ", 1), &f)
	if err != nil || !b.now().Before(f.Until) {
		return flow{}, lost
	}
	return f, nil
}
