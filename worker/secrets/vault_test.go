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
	"muster/testkit/vaulttest"
)

// A bao is a pretended Vault, for a client whose clock is that of the server.
type bao struct {
	*vaulttest.Server
	t testing.TB
}

func newBao(t testing.TB) bao {
	t.Helper()
	return bao{vaulttest.Start(t), t}
}

func (b bao) client() *vault {
	b.t.Helper()
	dir := b.t.TempDir()
	for name, text := range map[string]string{"ca": b.CA(), "role": vaulttest.RoleID + "\n",
		"secret": b.SecretID + "\n", "jwt": b.JWT} {
		write(b.t, dir+"/"+name, text, 0o400)
	}
	v := newVault(&Vault{Address: b.URL, CA: dir + "/ca", Timeout: 5 * time.Second, Mounts: []string{"team/kv"},
		Login: "approle", Mount: "approle", RoleID: dir + "/role", Secret: dir + "/secret"})
	v.now = b.Now
	return v
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	_ = os.Remove(path)
	if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
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
	b.Data["kv/fw/fw001"] = map[string]any{"pw": "swordfish", "n": 7}
	b.Data["team/kv/db"] = map[string]any{"pw": "other"}
	v := b.client()
	for _, c := range []struct {
		pass   time.Duration
		ref    string
		calls  string
		want   string
		before func()
	}{
		{ref: "vault:kv/fw/fw001#pw", want: "swordfish", calls: "POST/auth/approle/login GET/kv/data/fw/fw001"},
		{ref: "vault:team/kv/db#pw", want: "other", calls: "GET/team/kv/data/db"},
		{pass: 30 * time.Minute, ref: "vault:kv/fw/fw001#pw", want: "swordfish", calls: "GET/kv/data/fw/fw001"},
		{pass: 15 * time.Minute, ref: "vault:kv/fw/fw001#pw", want: "swordfish",
			calls: "POST/auth/token/renew-self GET/kv/data/fw/fw001"},
		{pass: 2 * time.Hour, ref: "vault:kv/fw/fw001#pw", want: "swordfish",
			calls: "POST/auth/approle/login GET/kv/data/fw/fw001"},
		{before: func() { clear(b.Tokens) }, ref: "vault:kv/fw/fw001#pw", want: "swordfish",
			calls: "GET/kv/data/fw/fw001 POST/auth/approle/login GET/kv/data/fw/fw001"},
		{ref: "vault:kv/fw/fw001#key", want: "it has no field key", calls: "GET/kv/data/fw/fw001"},
		{ref: "vault:kv/fw/fw001#n", want: "its field n is no text", calls: "GET/kv/data/fw/fw001"},
		{ref: "vault:kv/none#pw", want: "there is no secret none in the KV store", calls: "GET/kv/data/none"},
		{ref: "vault:closed/x#pw", want: "the node may not read closed/data/x",
			calls: "GET/closed/data/x POST/auth/approle/login GET/closed/data/x"},
	} {
		b.After(c.pass)
		if c.before != nil {
			b.Do(c.before)
		}
		got := get(t, v, c.ref)
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.ref, got, c.want)
		}
		if calls := b.Called(); calls != c.calls {
			t.Errorf("%s: calls %s, want %s", c.ref, calls, c.calls)
		}
	}
	v.revoke(t.Context())
	if calls := b.Called(); calls != "POST/auth/token/revoke-self" {
		t.Errorf("at the end: %s", calls)
	}
}

func TestVaultIsAskedByAJWT(t *testing.T) {
	t.Parallel()
	b := newBao(t)
	b.Data["kv/db"] = map[string]any{"pw": "swordfish"}
	v := b.client()
	v.cfg.Login, v.cfg.Mount, v.cfg.JWTRole = "jwt", vaulttest.JWTMount, vaulttest.JWTRole
	v.cfg.Secret = strings.TrimSuffix(v.cfg.Secret, "secret") + "jwt"
	if got := get(t, v, "vault:kv/db#pw"); got != "swordfish" {
		t.Errorf("got %s", got)
	}
}

// A fault that may pass makes jobs wait; any other one needs a person.
func TestFaultsOfVaultArePassingOrNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault func(bao, *vault)
		want  string
	}{
		"sealed":    {func(b bao, _ *vault) { b.Sealed = true }, `away: https://…: Vault answers 503: "Vault is sealed"`},
		"gone":      {func(b bao, _ *vault) { b.Close() }, "away: Vault at https://… does not answer: "},
		"secret id": {func(b bao, _ *vault) { b.SecretID = "new" }, "the login of the node (approle at approle) fails: "},
		"redirect": {func(b bao, _ *vault) { b.Elsewhere = "https://192.0.2.1" },
			"Vault answers 307, which leads elsewhere"},
		"mode": {func(_ bao, v *vault) { _ = os.Chmod(v.cfg.Secret, 0o644) },
			"vault.approle: … has mode 0644, so others"},
		"no secret": {func(_ bao, v *vault) { _ = os.Remove(v.cfg.Secret) }, "vault.approle: open …: no such file"},
		"certificate": {func(_ bao, v *vault) { v.cfg.CA = "" },
			`the certificate of Vault at https://… does not hold, so nothing was sent: "x509: `},
		"no CA": {func(_ bao, v *vault) { v.cfg.CA = v.cfg.Secret }, "vault.ca: … has no certificate in PEM"},
		"echo": {func(b bao, _ *vault) { b.Says, b.SecretID = "I was given "+b.SecretID+"\x1b[2J", "new" },
			`the login of the node (approle at approle) fails: Vault answers 400: "I was given (secret)\x1b[2J"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBao(t)
			b.Data["kv/db"] = map[string]any{"pw": "swordfish"}
			v := b.client()
			c.fault(b, v)
			short := strings.NewReplacer(b.URL, "https://…", v.cfg.Secret, "…", "\n", "LINE")
			got := short.Replace(get(t, v, "vault:kv/db#pw"))
			if !strings.HasPrefix(got, c.want) || strings.Contains(got, "s.e.c.r.e.t-id") ||
				strings.Contains(got, "LINE") {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if name == "redirect" && strings.Count(b.Called(), " ") > 0 {
				t.Error("it followed the redirect")
			}
		})
	}
}

// Jobs do not wait one after the other for a Vault that is away, and ask again a little later.
func TestAVaultThatIsAwayIsNotAskedByEachJob(t *testing.T) {
	t.Parallel()
	b := newBao(t)
	b.Data["kv/db"] = map[string]any{"pw": "swordfish"}
	b.Sealed = true
	v := b.client()
	for range 3 {
		if got := get(t, v, "vault:kv/db#pw"); !strings.HasPrefix(got, "away: ") {
			t.Errorf("got %s", got)
		}
	}
	if calls := b.Called(); calls != "POST/auth/approle/login" {
		t.Errorf("calls %s", calls)
	}
	b.Do(func() { b.Sealed = false })
	b.After(pause)
	if got := get(t, v, "vault:kv/db#pw"); got != "swordfish" {
		t.Errorf("afterwards: %s", got)
	}
}

// A renewal that Vault does not answer loses no token that is still good.
func TestATokenOutlivesAFailedRenewal(t *testing.T) {
	t.Parallel()
	b := newBao(t)
	b.Data["kv/db"] = map[string]any{"pw": "swordfish"}
	v := b.client()
	get(t, v, "vault:kv/db#pw")
	b.After(50 * time.Minute)
	b.Do(func() { b.Sealed = true })
	if got := get(t, v, "vault:kv/db#pw"); !strings.HasPrefix(got, "away: ") {
		t.Errorf("sealed: %s", got)
	}
	b.Do(func() { b.Sealed = false })
	b.After(pause)
	b.Called()
	if got, calls := get(t, v, "vault:kv/db#pw"), b.Called(); got != "swordfish" || strings.Contains(calls, "login") {
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
