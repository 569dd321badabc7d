package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"muster/api"
	"muster/cli"
)

// patience bounds the time for which the command waits for the browser.
const patience = 10 * time.Minute

// program logs in by a browser on this machine, which brings a code to a port of loopback
// (RFC 8252). The code is worth nothing without the verifier, which stays here (PKCE).
func program(ctx context.Context, s *cli.Session) (t api.LoginToken, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return t, err
	}
	verifier, state := rand.Text()+rand.Text(), rand.Text()
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	q := url.Values{"port": {strconv.Itoa(l.Addr().(*net.TCPAddr).Port)}, "state": {state},
		"challenge": {challenge}}
	visit := newVisitor(l, state)
	defer visit.close()
	if err := asksProvider(ctx, s, q); err != nil {
		return t, err
	}
	s.Say("open this link in a browser on this machine, and go on only if the page shows the word %s:",
		checkWord(challenge))
	s.Say("%s", s.Place+"/login/program?"+q.Encode())
	select {
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return t, errors.New("no browser came: call `muster login` again, or `muster login --device` " +
				"on a machine without one")
		}
		return t, ctx.Err()
	case code := <-visit.code:
		err = s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/login/program/token",
			Body: api.LoginCode{Code: code, Verifier: verifier}, Bound: cli.CallTimeout}, &t)
		return t, err
	}
}

// asksProvider returns an error unless the server asks an identity provider.
func asksProvider(ctx context.Context, s *cli.Session, q url.Values) error {
	r, err := s.Exchange(ctx, cli.Call{Method: http.MethodGet, Path: "/login/program", Query: q,
		Bound: cli.CallTimeout})
	if err != nil {
		return err
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return errors.New("this server asks no identity provider (server.oidc), so nobody logs in " +
			"there: use a token (MUSTER_TOKEN), or its unix socket")
	}
	return nil
}

// A visitor waits for the browser.
type visitor struct {
	code  chan string
	state string
	host  string // that the browser must call
	http  *http.Server
}

func newVisitor(l net.Listener, state string) *visitor {
	v := &visitor{code: make(chan string, 1), state: state, host: l.Addr().String()}
	v.http = &http.Server{Handler: v, ReadHeaderTimeout: 10 * time.Second}
	go v.http.Serve(l) // its error is that of close
	return v
}

// close waits until the browser has its answer.
func (v *visitor) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if v.http.Shutdown(ctx) != nil {
		v.http.Close()
	}
}

// ServeHTTP takes the code from the browser, once. Other callers do not know the state.
func (v *visitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	q := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != "/" || r.Host != v.host || q.Get("code") == "" ||
		subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(v.state)) != 1 {
		http.Error(w, "This is not the login that `muster login` waits for.", http.StatusBadRequest)
		return
	}
	select {
	case v.code <- q.Get("code"):
	default: // there is one already
	}
	// A browser that does not read it has gone.
	_, _ = w.Write([]byte("muster login has what it needs. Go back to the command line.\n"))
}

// checkWord returns the word that the page shows, too.
func checkWord(challenge string) string {
	sum := sha256.Sum256([]byte("muster login " + challenge))
	text := base32.StdEncoding.EncodeToString(sum[:])
	return text[:4] + "-" + text[4:8]
}
