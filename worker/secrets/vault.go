package secrets

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"muster/internal/files"
	"muster/internal/seal"
	"muster/internal/secretref"
	"muster/internal/wording"
)

// answerMax bounds an answer of Vault.
const answerMax = 4 << 20 // bytes

// vault is a client of Vault or OpenBao. It has one token at a time, in memory only, renews it
// while it lives, and logs in anew when it cannot be renewed.
type vault struct {
	cfg *Vault
	now func() time.Time

	mu    sync.Mutex // held during a login: the others wait for its token
	token token

	// While Vault is away nobody waits for it anew until then.
	pauseEnd time.Time
	pauseWhy error

	door sync.Mutex
	http *http.Client // guarded by door; nil: to be made
}

// A token is what a login gives. The zero value is none.
type token struct {
	text    string
	renew   time.Time // when it is to be renewed; zero: never
	end     time.Time // zero: never
	renewal bool      // it can be renewed
}

func newVault(cfg *Vault) *vault { return &vault{cfg: cfg, now: time.Now} }

// A refusal is an answer of Vault with another status than 2xx.
type refusal struct {
	status int
	said   string
}

// Error quotes Vault.
func (r *refusal) Error() string {
	if r.said == "" {
		return fmt.Sprintf("Vault answers %d", r.status)
	}
	return fmt.Sprintf("Vault answers %d: %s", r.status, r.said)
}

func hasStatus(err error, status int) bool {
	var r *refusal
	return errors.As(err, &r) && r.status == status
}

// pause is the time for which a Vault that did not answer is not asked again.
const pause = 5 * time.Second

// secret reads a field of a secret. Many jobs ask at once, so they do not all wait for a Vault that
// is away.
func (v *vault) secret(ctx context.Context, ref secretref.Ref) (seal.Text, error) {
	v.mu.Lock()
	why := v.pauseWhy
	if !v.now().Before(v.pauseEnd) {
		why = nil
	}
	v.mu.Unlock()
	if why != nil {
		return "", why
	}
	text, err := v.read(ctx, ref)
	if away := new(AwayError); errors.As(err, &away) && ctx.Err() == nil {
		v.mu.Lock()
		v.pauseEnd, v.pauseWhy = v.now().Add(pause), away
		v.mu.Unlock()
	}
	return text, err
}

// read reads a field of a secret.
func (v *vault) read(ctx context.Context, ref secretref.Ref) (seal.Text, error) {
	mount, path := v.split(ref.Path)
	text, fresh, err := v.current(ctx)
	if err != nil {
		return "", err
	}
	where := "/v1/" + escape(mount) + "/data/" + escape(path)
	var got struct {
		Data struct {
			Data json.RawMessage `json:"data"`
		} `json:"data"`
	}
	err = v.call(ctx, request{http.MethodGet, where, text, nil}, &got)
	if hasStatus(err, http.StatusForbidden) && !fresh {
		// The token may have ended before its time: somebody revoked it, or Vault was restored.
		v.forget(text)
		if text, _, err = v.current(ctx); err != nil {
			return "", err
		}
		err = v.call(ctx, request{http.MethodGet, where, text, nil}, &got)
	}
	switch {
	case hasStatus(err, http.StatusForbidden):
		return "", fmt.Errorf("the node may not read %s/data/%s: %w; give its role a policy with read",
			mount, path, err)
	case hasStatus(err, http.StatusNotFound):
		return "", fmt.Errorf("there is no secret %s in the KV store (version 2) %s, or its latest "+
			"version is deleted: %w", path, mount, err)
	case err != nil:
		return "", err
	}
	return fieldOf(got.Data.Data, ref.Field)
}

// split returns the mount of a path, and the rest.
func (v *vault) split(path string) (mount, rest string) {
	for _, m := range v.cfg.Mounts {
		if strings.HasPrefix(path, m+"/") && len(m) > len(mount) {
			mount = m
		}
	}
	if mount == "" {
		mount, _, _ = strings.Cut(path, "/")
	}
	return mount, strings.TrimPrefix(path, mount+"/")
}

func escape(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return strings.Join(parts, "/")
}

// current returns a token that is good now. fresh: Vault has just issued or renewed it.
func (v *vault) current(ctx context.Context) (text string, fresh bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.now()
	t := v.token
	alive := t.text != "" && (t.end.IsZero() || now.Before(t.end))
	if alive && (t.renew.IsZero() || now.Before(t.renew)) {
		return t.text, false, nil
	}
	if alive && t.renewal {
		err := v.take(ctx, "/v1/auth/token/renew-self", t.text, struct{}{})
		if err == nil {
			return v.token.text, true, nil
		}
		if errors.As(err, new(*AwayError)) {
			return t.text, false, nil // it is good for a while
		}
	}
	v.token = token{}
	body, err := v.credentials()
	if err != nil {
		return "", false, err
	}
	err = v.take(ctx, "/v1/auth/"+escape(v.cfg.Mount)+"/login", "", body)
	if hasStatus(err, http.StatusBadRequest) || hasStatus(err, http.StatusForbidden) ||
		hasStatus(err, http.StatusNotFound) {
		err = fmt.Errorf("the login of the node (%s at %s) fails: %w; give it a valid role and a new "+
			"secret", v.cfg.Login, v.cfg.Mount, err)
	}
	return v.token.text, true, err
}

// credentials returns the body of the login.
func (v *vault) credentials() (map[string]string, error) {
	secret, err := privateFile(v.cfg.Secret)
	if err != nil {
		return nil, fmt.Errorf("vault.%s: %w", v.cfg.Login, err)
	}
	if v.cfg.Login == "jwt" {
		return map[string]string{"role": v.cfg.JWTRole, "jwt": strings.TrimSpace(string(secret))}, nil
	}
	role, err := privateFile(v.cfg.RoleID)
	if err != nil {
		return nil, fmt.Errorf("vault.%s: %w", v.cfg.Login, err)
	}
	return map[string]string{"role_id": strings.TrimSpace(string(role)),
		"secret_id": strings.TrimSpace(string(secret))}, nil
}

// take calls for a token, and keeps it.
func (v *vault) take(ctx context.Context, path, with string, body any) error {
	var got struct {
		Auth *struct {
			Token     string `json:"client_token"`
			Lease     int64  `json:"lease_duration"` // seconds; 0: for ever
			Renewable bool   `json:"renewable"`
		} `json:"auth"`
	}
	began := v.now()
	if err := v.call(ctx, request{http.MethodPost, path, with, body}, &got); err != nil {
		return err
	}
	if got.Auth == nil || got.Auth.Token == "" || strings.ContainsAny(got.Auth.Token, "\r\n") ||
		got.Auth.Lease < 0 {
		return errors.New("the answer of Vault to the login has no token")
	}
	v.token = token{text: got.Auth.Token, renewal: got.Auth.Renewable}
	if lease := min(time.Duration(got.Auth.Lease), leaseMax) * time.Second; lease > 0 {
		v.token.renew, v.token.end = began.Add(lease*2/3), began.Add(lease)
	}
	return nil
}

// leaseMax bounds how long a token is believed to live.
const leaseMax = 365 * 24 * 60 * 60 // seconds

// forget drops a token that is not good any more.
func (v *vault) forget(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.token.text == text {
		v.token = token{}
	}
}

// revoke gives the token back.
func (v *vault) revoke(ctx context.Context) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if t := v.token.text; t != "" {
		end := request{http.MethodPost, "/v1/auth/token/revoke-self", t, struct{}{}}
		_ = v.call(ctx, end, nil) // the token ends by itself, too
	}
	v.token = token{}
}

// A request is one call of the API. Its body is sent as JSON.
type request struct {
	method, path, token string
	body                any // nil: there is none
}

// made returns the request for a server.
func (r request) made(ctx context.Context, cfg *Vault) (*http.Request, error) {
	var content io.Reader
	if r.body != nil {
		data, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(data)
	}
	to := strings.TrimRight(cfg.Address, "/") + r.path
	out, err := http.NewRequestWithContext(ctx, r.method, to, content)
	if err != nil {
		return nil, errors.New("the path cannot be asked for")
	}
	out.Header.Set("X-Vault-Request", "true") // a page in a browser cannot set it
	if r.token != "" {
		out.Header.Set("X-Vault-Token", r.token)
	}
	if cfg.Namespace != "" {
		out.Header.Set("X-Vault-Namespace", cfg.Namespace)
	}
	return out, nil
}

// call makes a request. An *AwayError says that Vault may answer it later.
func (v *vault) call(ctx context.Context, r request, out any) error {
	ctx, cancel := context.WithTimeout(ctx, v.cfg.Timeout)
	defer cancel()
	req, err := r.made(ctx, v.cfg)
	if err != nil {
		return err
	}
	client, err := v.client()
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return v.failed(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, answerMax+1))
	if err != nil || len(data) > answerMax {
		return &AwayError{fmt.Errorf("the answer of Vault at %s does not come whole", v.cfg.Address)}
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return v.refused(res.StatusCode, data, append(values(r.body), r.token))
	}
	if out == nil || res.StatusCode == http.StatusNoContent {
		return nil
	}
	if json.Unmarshal(data, out) != nil {
		return errors.New("the answer is not of Vault: look at vault.address")
	}
	return nil
}

// values returns what a login has sent.
func values(body any) []string {
	login, _ := body.(map[string]string) // others have nothing to hide
	return slices.Collect(maps.Values(login))
}

// The status of servers of Vault that do not serve now.
const (
	standby   = 473 // of a cluster that copies another
	secondary = 472 // for disaster recovery
)

// refused returns the error of an answer, without what it may repeat of a login. Vault that is
// sealed, starts, is a standby or has too much to do may answer later.
func (v *vault) refused(status int, data []byte, hide []string) error {
	var said struct {
		Errors []string `json:"errors"`
	}
	_ = json.Unmarshal(data, &said) // then it says nothing
	r := &refusal{status: status}
	if text := strings.Join(said.Errors, "; "); text != "" {
		for _, h := range hide {
			if h != "" {
				text = strings.ReplaceAll(text, h, seal.Mask)
			}
		}
		r.said = printable(text)
	}
	switch {
	case status >= 300 && status < 400:
		return fmt.Errorf("%w, which leads elsewhere: name the active server as vault.address", r)
	case status == http.StatusPreconditionFailed, status == http.StatusTooManyRequests,
		status == http.StatusRequestTimeout, status == standby, status == secondary, status >= 500:
		return &AwayError{fmt.Errorf("%s: %w", v.cfg.Address, r)}
	}
	return r
}

// failed returns the error of a request without an answer. A certificate that does not hold is a
// matter for people: it gets better by no wait.
func (v *vault) failed(err error) error {
	var bad *tls.CertificateVerificationError
	if errors.As(err, &bad) {
		v.door.Lock()
		v.http = nil // the file of authorities is read again
		v.door.Unlock()
		return fmt.Errorf("the certificate of Vault at %s does not hold, so nothing was sent: %s; look "+
			"at vault.ca", v.cfg.Address, printable(bad.Err.Error()))
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the address, which is named already
	}
	return &AwayError{fmt.Errorf("Vault at %s does not answer: %s", v.cfg.Address,
		printable(err.Error()))}
}

// saidMax bounds what an error repeats of foreign text.
const saidMax = 200 // bytes

// printable returns foreign text in quotes, on one line, and bounded.
func printable(text string) string { return fmt.Sprintf("%q", wording.ClipTo(text, saidMax)) }

// client returns the client of HTTP. It sends tokens to no other server and over no proxy.
func (v *vault) client() (*http.Client, error) {
	v.door.Lock()
	defer v.door.Unlock()
	if v.http != nil {
		return v.http, nil
	}
	roots := (*x509.CertPool)(nil) // of the system
	if v.cfg.CA != "" {
		data, err := files.Read(v.cfg.CA, fileMax)
		if err != nil {
			return nil, fmt.Errorf("vault.ca: %w", err)
		}
		if roots = x509.NewCertPool(); !roots.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("vault.ca: %s has no certificate in PEM", v.cfg.CA)
		}
	}
	v.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
		Transport: &http.Transport{ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
	}
	return v.http, nil
}
