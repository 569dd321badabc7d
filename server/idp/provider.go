package idp

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"muster/internal/wording"
)

// Provider is an identity provider that a server asks. Several goroutines may use it.
type Provider struct {
	cfg    Config
	back   string // URL to which it sends browsers back
	groups map[string][]string
	http   *http.Client
	now    func() time.Time

	mu    sync.Mutex
	found *found // nil: the provider has not told yet how it is asked
}

// found has what a provider tells about itself.
type found struct {
	*oidc.Provider
	tells struct {
		Scopes  []string `json:"scopes_supported"`
		SendsBy bool     `json:"authorization_response_iss_parameter_supported"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
}

const (
	answerMax   = 1 << 20 // bytes of an answer of the provider
	askTimeout  = 15 * time.Second
	subjectMax  = 255  // characters, as the standard says
	groupsMax   = 5000 // names in a claim
	groupLength = 300  // bytes of a name
)

// algorithms are those of signatures that count. None of them has a secret that both sides know.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512,
	oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}

// New returns the provider of a valid configuration. base begins the URLs of the server. Nobody is
// asked yet.
func New(cfg Config, base string, now func() time.Time) (*Provider, error) {
	groups, err := mapping(cfg.Groups)
	if cfg.GroupsClaim == "" {
		cfg.GroupsClaim = "groups"
	}
	client := &http.Client{Transport: bounded{http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &Provider{cfg: cfg, back: base + CallbackPath, groups: groups, http: client, now: now}, err
}

// bounded reads answers whole, and bounds their size and their time.
type bounded struct{ http.RoundTripper }

// RoundTrip makes a call.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), askTimeout)
	defer cancel()
	res, err := b.RoundTripper.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, answerMax))
	res.Body = io.NopCloser(bytes.NewReader(text))
	return res, err
}

// Name returns the issuer, for people.
func (p *Provider) Name() string { return p.cfg.Issuer }

// A Refusal says why a login with the provider comes to nothing.
type Refusal struct {
	Reason string // one of Reasons
	words  string
}

// Error is a sentence for whoever logs in.
func (r *Refusal) Error() string { return r.words }

// The reasons of a Refusal, for a metric.
const (
	Untrue    = "oidc_untrue"    // what came back does not hold
	Denied    = "oidc_denied"    // the provider has refused
	Groupless = "oidc_groupless" // the provider has left the list of groups out
)

// Reasons are all reasons of a Refusal.
var Reasons = []string{Untrue, Denied, Groupless}

func untrue(format string, args ...any) error {
	return &Refusal{Untrue, "the login does not hold: " + fmt.Sprintf(format, args...)}
}

// errAway is wrapped when the provider cannot be asked now.
var errAway = errors.New("the identity provider cannot be asked now")

// IsAway reports whether an error says that the provider cannot be asked now.
func IsAway(err error) bool { return errors.Is(err, errAway) }

// asking returns the context of calls to the provider.
func (p *Provider) asking(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.http)
}

// find asks the provider how it is asked, once. An issuer that calls itself otherwise is refused.
func (p *Provider) find(ctx context.Context) (*found, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	one, err := oidc.NewProvider(p.asking(ctx), p.cfg.Issuer)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %s", errAway, p.cfg.Issuer, wording.Clip(err.Error()))
	}
	f := &found{Provider: one}
	if err := one.Claims(&f.tells); err != nil {
		return nil, fmt.Errorf("%w: %s: %s", errAway, p.cfg.Issuer, wording.Clip(err.Error()))
	}
	for _, at := range []string{one.Endpoint().AuthURL, one.Endpoint().TokenURL,
		one.Endpoint().DeviceAuthURL} {
		if at != "" && checkIssuer(at) != nil {
			return nil, fmt.Errorf("%w: it names %s, which others could overhear", errAway,
				wording.Clip(at))
		}
	}
	p.found = f
	return f, nil
}

// client returns how this server presents itself to the provider.
func (p *Provider) client(f *found) (*oauth2.Config, error) {
	secret, err := p.cfg.Secret()
	if err != nil {
		return nil, err
	}
	c := &oauth2.Config{ClientID: p.cfg.ClientID, ClientSecret: secret, Endpoint: f.Endpoint(),
		Scopes: []string{oidc.ScopeOpenID}}
	// Without a style the library tries both, and so shows a code twice.
	c.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if m := f.tells.Methods; len(m) > 0 && !slices.Contains(m, "client_secret_basic") {
		c.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	if slices.Contains(f.tells.Scopes, "groups") {
		c.Scopes = append(c.Scopes, "groups")
	}
	return c, nil
}

// A Flow is a login that has begun in a browser. The browser keeps it until it comes back.
type Flow struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"` // of PKCE
}

// Begin returns a new flow, and the URL at the provider where it goes on.
func (p *Provider) Begin(ctx context.Context) (Flow, string, error) {
	f, err := p.find(ctx)
	if err != nil {
		return Flow{}, "", err
	}
	c, err := p.client(f)
	if err != nil {
		return Flow{}, "", err
	}
	flow := Flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	c.RedirectURL = p.back
	return flow, c.AuthCodeURL(flow.State, oidc.Nonce(flow.Nonce),
		oauth2.S256ChallengeOption(flow.Verifier)), nil
}

// Finish returns who has come back from the provider, with the parameters that it gave. The error
// is a *Refusal, or the provider cannot be asked now.
func (p *Provider) Finish(ctx context.Context, flow Flow, q url.Values) (Person, error) {
	if flow.State == "" || flow.Nonce == "" ||
		subtle.ConstantTimeCompare([]byte(flow.State), []byte(q.Get("state"))) != 1 {
		return Person{}, untrue("this browser has not begun it, or has begun another one since; begin " +
			"again at /login")
	}
	f, err := p.find(ctx)
	if err != nil {
		return Person{}, err
	}
	// A code of one provider is never shown to another (RFC 9207).
	if by := q.Get("iss"); by != "" && by != p.cfg.Issuer || by == "" && f.tells.SendsBy {
		return Person{}, untrue("the answer is from %q, not from %s", wording.Clip(by), p.cfg.Issuer)
	}
	if code := q.Get("error"); code != "" {
		return Person{}, &Refusal{Denied, "the identity provider refuses the login: " +
			wording.Clip(code+" "+q.Get("error_description"))}
	}
	c, err := p.client(f)
	if err != nil {
		return Person{}, err
	}
	c.RedirectURL = p.back
	t, err := c.Exchange(p.asking(ctx), q.Get("code"), oauth2.VerifierOption(flow.Verifier))
	if err != nil {
		return Person{}, exchangeError(err)
	}
	return p.person(ctx, f, t, flow.Nonce)
}

// exchangeError returns the error of a code, or a device, that the provider does not take.
func exchangeError(err error) error {
	var no *oauth2.RetrieveError
	if errors.As(err, &no) && no.ErrorCode != "" {
		return &Refusal{Denied, "the identity provider refuses the login: " +
			wording.Clip(no.ErrorCode+" "+no.ErrorDescription)}
	}
	return fmt.Errorf("%w: %s", errAway, wording.Clip(err.Error()))
}
