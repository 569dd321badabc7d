package secrets

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"muster/internal/secretref"
)

// client returns a client whose clock is that of the server.
func (b *bao) client() *vault {
	v := newVault(b.settings())
	v.now = b.time
	return v
}

// get reads a secret, and returns it or the error, with "away: " before one that may pass.
func get(t testing.TB, v *vault, text string) string {
	t.Helper()
	ref, err := secretref.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.secret(t.Context(), ref)
	switch {
	case err == nil:
		return string(got)
	case errors.As(err, new(*AwayError)):
		return "away: " + err.Error()
	}
	return err.Error()
}

func TestVaultGivesFieldsByALoginThatIsRenewed(t *testing.T) {
	t.Parallel()
	b := newBao(t)
	b.data["kv/fw/fw001"] = map[string]any{"pw": "swordfish", "n": 7}
	b.data["team/kv/db"] = map[string]any{"pw": "other"}
	v := b.client()
	for _, c := range []struct {
		pass        time.Duration
		ref, calls  string
		want        string
		before      func()
		description string
	}{
		{ref: "vault:kv/fw/fw001#pw", want: "swordfish", calls: "POST/auth/approle/login GET/kv/data/fw/fw001"},
		{ref: "vault:team/kv/db#pw", want: "other", calls: "GET/team/kv/data/db"},
		{pass: 30 * time.Minute, ref: "vault:kv/fw/fw001#pw", want: "swordfish", calls: "GET/kv/data/fw/fw001"},
		{pass: 15 * time.Minute, ref: "vault:kv/fw/fw001#pw", want: "swordfish",
			calls: "POST/auth/token/renew-self GET/kv/data/fw/fw001"},
		{pass: 2 * time.Hour, ref: "vault:kv/fw/fw001#pw", want: "swordfish",
			calls: "POST/auth/approle/login GET/kv/data/fw/fw001"},
		{before: func() { clear(b.tokens) }, ref: "vault:kv/fw/fw001#pw", want: "swordfish",
			calls: "GET/kv/data/fw/fw001 POST/auth/approle/login GET/kv/data/fw/fw001"},
		{ref: "vault:kv/fw/fw001#key", want: "it has no field key", calls: "GET/kv/data/fw/fw001"},
		{ref: "vault:kv/fw/fw001#n", want: "its field n is no text", calls: "GET/kv/data/fw/fw001"},
		{ref: "vault:kv/none#pw", want: "there is no secret none in the KV store", calls: "GET/kv/data/none"},
		{ref: "vault:closed/x#pw", want: "the node may not read closed/data/x",
			calls: "GET/closed/data/x POST/auth/approle/login GET/closed/data/x"},
	} {
		b.after(c.pass)
		if c.before != nil {
			b.do(c.before)
		}
		got := get(t, v, c.ref)
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.ref, got, c.want)
		}
		if calls := b.called(); calls != c.calls {
			t.Errorf("%s: calls %s, want %s", c.ref, calls, c.calls)
		}
	}
	v.revoke(t.Context())
	if calls := b.called(); calls != "POST/auth/token/revoke-self" {
		t.Errorf("at the end: %s", calls)
	}
}

func TestVaultIsAskedByAJWT(t *testing.T) {
	t.Parallel()
	b := newBao(t)
	b.data["kv/db"] = map[string]any{"pw": "swordfish"}
	v := b.client()
	v.cfg.Login, v.cfg.Mount, v.cfg.JWTRole = "jwt", "k8s/dc1", "muster"
	v.cfg.Secret = strings.TrimSuffix(v.cfg.Secret, "secret") + "jwt"
	if got := get(t, v, "vault:kv/db#pw"); got != "swordfish" {
		t.Errorf("got %s", got)
	}
}

// A fault that may pass makes jobs wait; any other one needs a person.
func TestFaultsOfVaultArePassingOrNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(*bao, *vault)
		want  string
	}{
		"sealed":    {func(b *bao, _ *vault) { b.sealed = true }, `away: https://…: Vault answers 503: "Vault is sealed"`},
		"gone":      {func(b *bao, _ *vault) { b.Close() }, "away: Vault at https://… does not answer: "},
		"secret id": {func(b *bao, _ *vault) { b.secretID = "new" }, "the login of the node (approle at approle) fails: "},
		"redirect": {func(b *bao, _ *vault) { b.elsed = "https://192.0.2.1" },
			"Vault answers 307, which leads elsewhere"},
		"mode": {func(_ *bao, v *vault) { _ = os.Chmod(v.cfg.Secret, 0o644) },
			"vault.approle: … has mode 0644, so others"},
		"no secret": {func(_ *bao, v *vault) { _ = os.Remove(v.cfg.Secret) }, "vault.approle: open …: no such file"},
		"certificate": {func(_ *bao, v *vault) { v.cfg.CA = "" },
			`the certificate of Vault at https://… does not hold, so nothing was sent: "x509: `},
		"no CA": {func(_ *bao, v *vault) { v.cfg.CA = v.cfg.Secret }, "vault.ca: … has no certificate in PEM"},
		"echo": {func(b *bao, _ *vault) { b.says, b.secretID = "I was given "+b.secretID+"\x1b[2J", "new" },
			`the login of the node (approle at approle) fails: Vault answers 400: "I was given (secret)\x1b[2J"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBao(t)
			b.data["kv/db"] = map[string]any{"pw": "swordfish"}
			v := b.client()
			c.fault(b, v)
			short := strings.NewReplacer(b.URL, "https://…", v.cfg.Secret, "…", "\n", "LINE")
			got := short.Replace(get(t, v, "vault:kv/db#pw"))
			if !strings.HasPrefix(got, c.want) || strings.Contains(got, "s.e.c.r.e.t-id") ||
				strings.Contains(got, "LINE") {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if name == "redirect" && strings.Count(b.called(), " ") > 0 {
				t.Error("it followed the redirect")
			}
		})
	}
}

// Jobs do not wait one after the other for a Vault that is away, and ask again a little later.
func TestAVaultThatIsAwayIsNotAskedByEachJob(t *testing.T) {
	t.Parallel()
	b := newBao(t)
	b.data["kv/db"] = map[string]any{"pw": "swordfish"}
	b.sealed = true
	v := b.client()
	for range 3 {
		if got := get(t, v, "vault:kv/db#pw"); !strings.HasPrefix(got, "away: ") {
			t.Errorf("got %s", got)
		}
	}
	if calls := b.called(); calls != "POST/auth/approle/login" {
		t.Errorf("calls %s", calls)
	}
	b.do(func() { b.sealed = false })
	b.after(pause)
	if got := get(t, v, "vault:kv/db#pw"); got != "swordfish" {
		t.Errorf("afterwards: %s", got)
	}
}

// A renewal that Vault does not answer loses no token that is still good.
func TestATokenOutlivesAFailedRenewal(t *testing.T) {
	t.Parallel()
	b := newBao(t)
	b.data["kv/db"] = map[string]any{"pw": "swordfish"}
	v := b.client()
	get(t, v, "vault:kv/db#pw")
	b.after(50 * time.Minute)
	b.do(func() { b.sealed = true })
	if got := get(t, v, "vault:kv/db#pw"); !strings.HasPrefix(got, "away: ") {
		t.Errorf("sealed: %s", got)
	}
	b.do(func() { b.sealed = false })
	b.after(pause)
	b.called()
	if got, calls := get(t, v, "vault:kv/db#pw"), b.called(); got != "swordfish" || strings.Contains(calls, "login") {
		t.Errorf("got %s by %s, want the old token", got, calls)
	}
}

// A server that accepts and says nothing costs no more than the timeout.
func TestVaultThatSaysNothingIsAway(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	b := newBao(t)
	v := b.client()
	v.cfg.Address, v.cfg.Timeout = "https://"+l.Addr().String(), 50*time.Millisecond
	if got := get(t, v, "vault:kv/db#pw"); !strings.HasPrefix(got, "away: Vault at ") {
		t.Errorf("got %s", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.read(ctx, secretref.Ref{Path: "kv/db", Field: "pw"}); !errors.As(err, new(*AwayError)) {
		t.Errorf("with a context that has ended: %v", err)
	}
}
