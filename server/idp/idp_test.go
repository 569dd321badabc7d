package idp

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/testkit/oidctest"
)

// asking returns a provider that a server asks.
func asking(t *testing.T, at *oidctest.Provider, change func(*Config)) *Provider {
	t.Helper()
	cfg := Config{Issuer: at.URL, ClientID: oidctest.ClientID, Device: true,
		Secret: func() (string, error) { return oidctest.Secret, nil },
		Groups: []string{"fleet-admins=group:admins", "fleet-admins = group:ops", "NOC=group:ops", "a=b=group:odd"}}
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate("https://muster.example"); err != nil {
		t.Fatal(err)
	}
	p, err := New(cfg, "https://muster.example", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// visit goes to the provider as a browser does, and returns what it brings back.
func visit(t *testing.T, at string) url.Values {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(t.Context(), "GET", at, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	back, err := res.Location()
	if err != nil {
		t.Fatal(res.Status, err)
	}
	return back.Query()
}

// logIn does a whole login.
func logIn(t *testing.T, p *Provider) (Person, error) {
	t.Helper()
	flow, at, err := p.Begin(t.Context())
	if err != nil {
		return Person{}, err
	}
	return p.Finish(t.Context(), flow, visit(t, at))
}

func TestAPersonIsTheIssuerAndTheSubject(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t, "248289761001")
	at.Is(map[string]any{"email": "root@example.com", "preferred_username": "root",
		"groups": []string{"fleet-admins", "NOC", "noc", "a=b"}})
	for _, alg := range []string{"RS256", "ES256"} {
		at.Lie(oidctest.Lies{Alg: alg})
		who, err := logIn(t, asking(t, at, nil))
		if err != nil || who.Principal != "oidc:"+at.URL+"#248289761001" ||
			!slices.Equal(who.Groups, []string{"group:admins", "group:odd", "group:ops"}) ||
			!slices.Equal(who.Unmapped, []string{"noc"}) || len(who.Came) != 4 || who.None {
			t.Errorf("%s: %+v, %v", alg, who, err)
		}
	}
}

func TestGroupsComeFromTheConfiguredClaim(t *testing.T) {
	t.Parallel()
	overage := map[string]any{"_claim_names": map[string]any{"groups": "src1"},
		"_claim_sources": map[string]any{"src1": map[string]any{"endpoint": "https://graph.example"}}}
	for name, c := range map[string]struct {
		claim  string
		claims map[string]any
		want   string // groups, or words of the refusal
	}{
		"a list":   {"", map[string]any{"groups": []string{"NOC"}}, "group:ops"},
		"one name": {"", map[string]any{"groups": "NOC"}, "group:ops"},
		"another claim": {"roles", map[string]any{"roles": []string{"NOC"}, "groups": []string{"fleet-admins"}},
			"group:ops"},
		"inside of another": {"realm_access.roles", map[string]any{"realm_access": map[string]any{
			"roles": []string{"NOC"}}}, "group:ops"},
		"a name with dots":  {"https://x.example/g", map[string]any{"https://x.example/g": []string{"NOC"}}, "group:ops"},
		"no claim":          {"", map[string]any{}, ""},
		"an empty list":     {"", map[string]any{"groups": []string{}}, ""},
		"left out":          {"", overage, "! has left the list of groups (groups) out"},
		"left out, inside":  {"groups.x", overage, "! has left the list"},
		"left out, other":   {"roles", overage, ""},
		"Entra's implicit":  {"", map[string]any{"hasgroups": true}, "! has left the list"},
		"a number":          {"", map[string]any{"groups": 7}, "! neither a list"},
		"a list of numbers": {"", map[string]any{"groups": []int{7}}, "! neither a list"},
		"names in objects":  {"", map[string]any{"groups": []any{map[string]any{"id": "NOC"}}}, "! neither a list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := oidctest.New(t, "s")
			at.Is(c.claims)
			who, err := logIn(t, asking(t, at, func(cfg *Config) { cfg.GroupsClaim = c.claim }))
			if words, refused := strings.CutPrefix(c.want, "! "); refused {
				var no *Refusal
				if !errors.As(err, &no) || !strings.Contains(no.Error(), words) {
					t.Errorf("%+v, %v", who, err)
				}
				return
			}
			if err != nil || strings.Join(who.Groups, " ") != c.want {
				t.Errorf("%+v, %v", who, err)
			}
		})
	}
}

// A provider, or somebody in its place, who lies logs nobody in.
func TestALoginThatDoesNotHoldIsRefused(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, c := range map[string]struct {
		lies oidctest.Lies
		want string
	}{
		"no signature":         {oidctest.Lies{Alg: "none"}, "does not hold"},
		"signed by the secret": {oidctest.Lies{Alg: "HS256"}, "does not hold"},
		"another key":          {oidctest.Lies{Stranger: true}, "does not hold"},
		"another audience":     {oidctest.Lies{Claims: map[string]any{"aud": "other"}}, "audience"},
		"no audience":          {oidctest.Lies{Claims: map[string]any{"aud": nil}}, "audience"},
		"two audiences, no azp": {oidctest.Lies{Claims: map[string]any{"aud": []string{oidctest.ClientID,
			"other"}}}, "azp"},
		"for another party": {oidctest.Lies{Claims: map[string]any{"azp": "other"}}, "azp"},
		"another issuer": {oidctest.Lies{Claims: map[string]any{"iss": "https://evil.example"}},
			"issued by a different provider"},
		"the issuer with a dash": {oidctest.Lies{Claims: map[string]any{"iss": "x/"}}, "issued by a different provider"},
		"expired":                {oidctest.Lies{Claims: map[string]any{"exp": at(-time.Minute)}}, "expired"},
		"no end":                 {oidctest.Lies{Claims: map[string]any{"exp": 0}}, "expired"},
		"not yet":                {oidctest.Lies{Claims: map[string]any{"nbf": at(time.Hour)}}, "does not hold"},
		"another nonce":          {oidctest.Lies{Claims: map[string]any{"nonce": "x"}}, "nonce"},
		"no nonce":               {oidctest.Lies{Claims: map[string]any{"nonce": ""}}, "nonce"},
		"no subject":             {oidctest.Lies{Claims: map[string]any{"sub": ""}}, "no subject"},
		"a huge subject":         {oidctest.Lies{Claims: map[string]any{"sub": strings.Repeat("x", 256)}}, "no subject"},
		"a subject with a star":  {oidctest.Lies{Claims: map[string]any{"sub": "*"}}, "wildcard"},
		"a subject of two lines": {oidctest.Lies{Claims: map[string]any{"sub": "a\nb"}}, "blank"},
		"no ID token":            {oidctest.Lies{NoToken: true}, "no ID token"},
		"mixed up":               {oidctest.Lies{Issuer: "https://evil.example"}, `from "https://evil.example"`},
		"it does not say who":    {oidctest.Lies{Issuer: "-"}, `from ""`},
		"refused":                {oidctest.Lies{Error: "access_denied"}, "access_denied"},
		"by post, another code": {oidctest.Lies{Config: map[string]any{"token_endpoint_auth_methods_supported": []string{
			"client_secret_post"}}, Claims: map[string]any{"nonce": "x"}}, "nonce"},
		"it is another": {oidctest.Lies{Config: map[string]any{"issuer": "https://evil.example"}},
			"cannot be asked"},
		"tokens in plain text": {oidctest.Lies{Config: map[string]any{"token_endpoint": "http://evil.example"}},
			"could overhear"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there := oidctest.New(t, "s")
			there.Lie(c.lies)
			who, err := logIn(t, asking(t, there, nil))
			if err == nil || who.Principal != "" && who.Groups != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v, want %q", who, err, c.want)
			}
		})
	}
}

// A code is for the browser that has begun the login, and works once.
func TestACodeIsForOneLogin(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t, "s")
	p := asking(t, at, nil)
	begin := func() (Flow, url.Values) {
		t.Helper()
		flow, to, err := p.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return flow, visit(t, to)
	}
	one, q := begin()
	two, r := begin()
	asked := at.Asked()
	if _, err := p.Finish(t.Context(), two, q); err == nil || at.Asked() != asked {
		t.Errorf("the answer to another login: %v", err)
	}
	if _, err := p.Finish(t.Context(), Flow{}, url.Values{"code": q["code"], "iss": q["iss"]}); err == nil {
		t.Error("no login has begun")
	}
	swapped := two
	swapped.Verifier = one.Verifier
	if _, err := p.Finish(t.Context(), swapped, r); err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("the verifier of another: %v", err)
	}
	if who, err := p.Finish(t.Context(), one, q); err != nil || who.Principal == "" {
		t.Errorf("the right one: %v", err)
	}
	if _, err := p.Finish(t.Context(), one, q); err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("the code again: %v", err)
	}
	// The code of one login, under the state of another.
	three, s := begin()
	four, u := begin()
	u.Set("code", s.Get("code"))
	if _, err := p.Finish(t.Context(), four, u); err == nil {
		t.Error("the code of another login")
	}
	_ = three
}

func TestADeviceLogsInOnceSomebodyHasConfirmed(t *testing.T) {
	t.Parallel()
	at := oidctest.New(t, "s")
	p := asking(t, at, nil)
	d, err := p.BeginDevice(t.Context())
	if err != nil || d.User == "" || d.At != at.URL+"/activate" || d.Interval < 5 || time.Until(d.Until) < time.Minute {
		t.Fatalf("%+v, %v", d, err)
	}
	var wait *Pending
	if _, err := p.FinishDevice(t.Context(), d); !errors.As(err, &wait) || wait.Slower {
		t.Errorf("before: %v", err)
	}
	at.SlowDown()
	if _, err := p.FinishDevice(t.Context(), d); !errors.As(err, &wait) || !wait.Slower {
		t.Errorf("too often: %v", err)
	}
	at.Confirm(d.User, true)
	if who, err := p.FinishDevice(t.Context(), d); err != nil || who.Principal != "oidc:"+at.URL+"#s" {
		t.Errorf("after: %+v, %v", who, err)
	}
	var no *Refusal
	if _, err := p.FinishDevice(t.Context(), d); !errors.As(err, &no) {
		t.Errorf("again: %v", err)
	}
	d, err = p.BeginDevice(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at.Confirm(d.User, false)
	if _, err := p.FinishDevice(t.Context(), d); !errors.As(err, &no) || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("denied: %v", err)
	}
	off := asking(t, at, func(c *Config) { c.Device = false })
	if _, err := off.BeginDevice(t.Context()); !errors.As(err, &no) {
		t.Errorf("not allowed: %v", err)
	}
	if _, err := off.FinishDevice(t.Context(), d); !errors.As(err, &no) {
		t.Errorf("not allowed: %v", err)
	}
}

func TestMistakesOfTheConfigurationAreAllTold(t *testing.T) {
	t.Parallel()
	err := Config{Issuer: "http://idp.example",
		Groups: []string{"x", "=group:a", "x=ops", "x=os-group:ops", "x=group:*"}}.Validate("")
	for _, want := range []string{`issuer = "http://idp.example"`, "client_id", "server.url", `"x": want NAME=`,
		`"=group:a"`, "no kind", "os-group", "wildcard"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	for _, bad := range []string{"idp", "https://", "https://a@idp.example", "https://idp.example?x",
		"https://idp.example#x"} {
		if (Config{Issuer: bad, ClientID: "x"}).Validate("https://m.example") == nil {
			t.Errorf("%q is an issuer", bad)
		}
	}
	if (Config{ClientID: "x"}).Validate("") == nil || (Config{}).Validate("") != nil {
		t.Error("a configuration without an issuer")
	}
}
