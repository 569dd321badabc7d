package remote

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"muster/fleet"
)

// userCertificate writes a certificate for the key at path and returns its own path.
func userCertificate(
	t testing.TB, path string, ca ssh.Signer, spoil func(*ssh.Certificate),
) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	cert := certificate(t, signer.PublicKey(), ca, func(c *ssh.Certificate) {
		c.CertType, c.ValidPrincipals = ssh.UserCert, []string{"root"}
		if spoil != nil {
			spoil(c)
		}
	})
	to := path + "-cert.pub"
	if err := os.WriteFile(to, ssh.MarshalAuthorizedKey(cert), 0o644); err != nil {
		t.Fatal(err)
	}
	return to
}

// wantsCertificates lets in who shows a certificate by ca for the user.
func wantsCertificates(ca ssh.Signer) func(ssh.PublicKey) error {
	return func(key ssh.PublicKey) error {
		cert, ok := key.(*ssh.Certificate)
		if !ok {
			return fmt.Errorf("a plain key %s", key.Type())
		}
		checker := ssh.CertChecker{}
		if string(cert.SignatureKey.Marshal()) != string(ca.PublicKey().Marshal()) {
			return fmt.Errorf("a stranger signed it")
		}
		return checker.CheckCert("root", cert)
	}
}

func TestLoginWithACertificate(t *testing.T) {
	t.Parallel()
	ca := newSigner(t, "ed25519")
	p := peer{auth: wantsCertificates(ca)}
	h := p.listen(t)
	h.Certificate = userCertificate(t, h.Key, ca, nil)
	conn, err := mustClient(t, Default()).Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if about := conn.About(); about.LoginUntil == "" || !strings.Contains(about.Login, h.Certificate) {
		t.Errorf("the login is %q until %q", about.Login, about.LoginUntil)
	}
	h.Certificate = ""
	_, err = mustClient(t, Default()).Connect(t.Context(), h)
	wantKind(t, err, KindAuth, false, "login as")
}

func TestLoginWithACertificateOfTheAgent(t *testing.T) {
	t.Parallel()
	ca := newSigner(t, "ed25519")
	p := peer{auth: wantsCertificates(ca)}
	h := p.listen(t)
	h.Certificate = userCertificate(t, h.Key, ca, nil)
	ring := agent.NewKeyring()
	addKeys(t, ring, agentKeysMax+1) // of others, before it
	text, err := os.ReadFile(h.Key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := ssh.ParseRawPrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
		t.Fatal(err)
	}
	h.Key = ""
	config := Default()
	config.AgentSocket = serveAgent(t, ring)
	conn, err := mustClient(t, config).Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	other := serveAgent(t, agentOf(t))
	config.AgentSocket = other
	_, err = mustClient(t, config).Connect(t.Context(), h)
	wantKind(t, err, KindKey, false, "is for the key ssh-ed25519", "not for the 1 keys of the SSH agent")
}

func agentOf(t *testing.T) agent.Agent {
	ring := agent.NewKeyring()
	addKeys(t, ring, 1)
	return ring
}

func TestCertificatesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	ca := newSigner(t, "ed25519")
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "cert")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	spoiled := func(spoil func(*ssh.Certificate)) func(h fleet.Host) string {
		return func(h fleet.Host) string { return userCertificate(t, h.Key, ca, spoil) }
	}
	for name, test := range map[string]struct {
		cert  func(h fleet.Host) string
		words string
	}{
		"missing":   {func(fleet.Host) string { return "/nonsense" }, "no such file"},
		"rubbish":   {func(fleet.Host) string { return file("x") }, "cannot be read"},
		"a key":     {func(fleet.Host) string { return file(keyLine(ca)) }, "no certificate"},
		"of a host": {spoiled(func(c *ssh.Certificate) { c.CertType = ssh.HostCert }), "one of a user"},
		"expired":   {spoiled(func(c *ssh.Certificate) { c.ValidBefore = 1 }), "ended at 1970-01-01 00:00:01"},
		"future":    {spoiled(func(c *ssh.Certificate) { c.ValidAfter = 1 << 33 }), "holds only from 2242"},
		"almost over": {spoiled(func(c *ssh.Certificate) {
			c.ValidBefore = uint64(time.Now().Add(20 * time.Second).Unix())
		}), "or will before a login is over"},
		"another's": {func(fleet.Host) string { return userCertificate(t, clientKey(t), ca, nil) },
			"is for the key ssh-ed25519"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := peer{handle: func(net.Conn) { t.Error("it was dialled") }}
			h := p.host(t)
			h.Certificate = test.cert(h)
			_, err := mustClient(t, Default()).Connect(t.Context(), h)
			wantKind(t, err, KindKey, false, test.words)
		})
	}
}

// A command that outlives the certificate could not be stopped over a second
// connection, nor looked for by the next attempt.
func TestACommandMayNotOutliveTheCertificate(t *testing.T) {
	t.Parallel()
	ca := newSigner(t, "ed25519")
	p := peer{}
	h := p.listen(t)
	h.Certificate = userCertificate(t, h.Key, ca, nil) // an hour
	conn, err := mustClient(t, Default()).Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Run(t.Context(), Command{Shell: "true", Bound: 50 * time.Minute}); err != nil {
		t.Error(err)
	}
	_, err = conn.Run(t.Context(), Command{Shell: "true", Bound: 2 * time.Hour})
	wantKind(t, err, KindKey, false, "before a command that needs it may end (2h0m0s): renew it")

	// But what may run already is asked about with what is left.
	conn.keeper.fence = fleet.FenceAuto
	_, err = conn.Run(t.Context(), Command{Shell: "true", Bound: 2 * time.Hour,
		Record: &Record{Job: "t:h", Step: 1, Token: 1, Again: true}})
	if kind := KindOf(err); kind != KindMute && kind != KindLost {
		t.Errorf("it was not asked about: %v", err)
	}
}

func TestAnEncryptedKeyIsOpenedByItsPassphrase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p := peer{}
	h := p.listen(t)
	h.Key = file("id", string(pem.EncodeToMemory(block)), 0o600)
	for _, test := range []struct{ passphrase, words string }{
		{file("right", "open sesame\n", 0o400), ""},
		{file("bare", "open sesame", 0o600), ""},
		{file("of-windows", "open sesame\r\nmore", 0o600), ""},
		{"", "has a passphrase: name a file with it under ssh.passphrase_file"},
		{file("wrong", "close sesame", 0o600), "wrong does not open it"},
		{file("for-all", "open sesame", 0o644), "mode 0644, so others can use it: chmod 400"},
		{file("for-the-group", "open sesame", 0o440), "others can use it"},
		{file("empty", "\n", 0o600), "is empty"},
		{filepath.Join(dir, "gone"), "no such file"},
		{dir, "not a regular file"},
	} {
		config := Default()
		config.PassphraseFile = test.passphrase
		conn, err := mustClient(t, config).Connect(t.Context(), h)
		if test.words == "" {
			if err != nil {
				t.Errorf("%s: %v", test.passphrase, err)
				continue
			}
			conn.Close()
			continue
		}
		wantKind(t, err, KindKey, false, test.words)
		if strings.Contains(err.Error(), "sesame") {
			t.Errorf("the passphrase is told: %v", err)
		}
	}
}

func TestFilesThatAreKeptAreBounded(t *testing.T) {
	t.Parallel()
	var f files[int]
	path := clientKey(t)
	for i := range filesMax {
		if f.kept == nil {
			f.kept = map[string]file[int]{}
		}
		f.kept[fmt.Sprint(i)] = file[int]{}
	}
	if _, err := f.load(path, "x", func([]byte) (int, error) { return 1, nil }); err != nil {
		t.Fatal(err)
	}
	if len(f.kept) != 1 {
		t.Errorf("%d files are kept", len(f.kept))
	}
}

// old is a peer that knows nothing of what is good today.
func old(t *testing.T, spoil func(*ssh.ServerConfig)) (client *Client, h fleet.Host) {
	t.Helper()
	p := peer{keys: []ssh.Signer{newSigner(t, "rsa")}, config: spoil}
	return hasty(t), p.listen(t)
}

func TestOldAppliancesNeedTheLegacyProfile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(*ssh.ServerConfig)
		kind  Kind // without the profile
		about func(About) string
		want  string
	}{
		"group1": {func(c *ssh.ServerConfig) { c.KeyExchanges = []string{ssh.InsecureKeyExchangeDH1SHA1} },
			KindRefused, func(a About) string { return a.KeyExchange }, "diffie-hellman-group1-sha1"},
		"group14": {func(c *ssh.ServerConfig) { c.KeyExchanges = []string{ssh.InsecureKeyExchangeDH14SHA1} },
			KindRefused, func(a About) string { return a.KeyExchange }, "diffie-hellman-group14-sha1"},
		"CBC": {func(c *ssh.ServerConfig) { c.Ciphers = []string{ssh.InsecureCipherAES128CBC} },
			KindRefused, func(a About) string { return a.CipherIn + a.MACOut }, "aes128-cbchmac-sha2-256-etm@openssh.com"},
		"3DES": {func(c *ssh.ServerConfig) { c.Ciphers = []string{ssh.InsecureCipherTripleDESCBC} },
			KindRefused, func(a About) string { return a.CipherOut }, "3des-cbc"},
		"short MAC": {func(c *ssh.ServerConfig) {
			c.MACs, c.Ciphers = []string{ssh.InsecureHMACSHA196}, []string{ssh.CipherAES128CTR}
		}, KindRefused, func(a About) string { return a.MACIn }, "hmac-sha1-96"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, h := old(t, test.spoil)
			_, err := client.Connect(t.Context(), h)
			wantKind(t, err, test.kind, false, "no common algorithm", "give it the profile legacy")
			h.Profile = fleet.ProfileLegacy
			conn, err := client.Connect(t.Context(), h)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			about := conn.About()
			if got := test.about(about); got != test.want || about.Profile != fleet.ProfileLegacy {
				t.Errorf("%s, want %s: %+v", got, test.want, about)
			}
		})
	}
}

// A host that proves itself with SHA-1 only is an old one, too.
func TestHostKeysBySHA1NeedTheLegacyProfile(t *testing.T) {
	t.Parallel()
	sha1, err := ssh.NewSignerWithAlgorithms(newSigner(t, "rsa").(ssh.AlgorithmSigner),
		[]string{ssh.KeyAlgoRSA})
	if err != nil {
		t.Fatal(err)
	}
	p := peer{keys: []ssh.Signer{sha1}}
	h := p.listen(t)
	_, err = hasty(t).Connect(t.Context(), h)
	wantKind(t, err, KindHostKey, false, `only for ["ssh-rsa"`, "give it the profile legacy")
	h.Profile = fleet.ProfileLegacy
	conn, err := hasty(t).Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.About().Signature; got != ssh.KeyAlgoRSA {
		t.Errorf("the host key was proved by %s", got)
	}
	h.Profile = "ancient"
	_, err = hasty(t).Connect(t.Context(), h)
	wantKind(t, err, KindInvalid, false, `profile "ancient" is not known`)
}

// Algorithms that not even old hosts need stay off. If both sides are modern, they agree on
// modern algorithms, whatever the profile is.
func TestTheLegacyProfileIsNoExcuse(t *testing.T) {
	t.Parallel()
	client, h := old(t, func(c *ssh.ServerConfig) { c.Ciphers = []string{ssh.InsecureCipherRC4} })
	h.Profile = fleet.ProfileLegacy
	_, err := client.Connect(t.Context(), h)
	wantKind(t, err, KindRefused, false, "not even the legacy profile")

	client, h = old(t, nil)
	h.Profile = fleet.ProfileLegacy
	conn, err := client.Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	a := conn.About()
	if a.KeyExchange != ssh.KeyExchangeMLKEM768X25519 || a.CipherIn != ssh.CipherAES128GCM ||
		a.Signature == ssh.KeyAlgoRSA || a.MACIn != "" {
		t.Errorf("agreed on %+v", a)
	}
}

func TestAKeyOfAnUnusableTypeIsNotAskedFor(t *testing.T) {
	t.Parallel()
	prime, sub, two := new(big.Int).Lsh(big.NewInt(1), 1023), new(big.Int).Lsh(big.NewInt(1), 159), big.NewInt(2)
	blob := ssh.Marshal(struct {
		Name       string
		P, Q, G, Y *big.Int
	}{dsa, prime, sub, two, two})
	line := dsa + " " + base64.StdEncoding.EncodeToString(blob)
	h := fleet.Hop{HostKeys: []string{line}}
	if _, err := mustClient(t, Default()).trustIn(h, false); err == nil ||
		!strings.Contains(err.Error(), "of no use but with the profile legacy") {
		t.Errorf("a DSA key was taken: %v", err)
	}
	known, err := mustClient(t, Default()).trustIn(h, true)
	if err != nil || len(known.algorithms()) != 1 {
		t.Errorf("legacy: %q, %v", known.algorithms(), err)
	}
	if err := CheckHostKey(line); err == nil || !strings.Contains(err.Error(), "cannot be used") {
		t.Errorf("CheckHostKey: %v", err)
	}
}

func TestThrottledIsTriedAgainAndOnlyThat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		refused int // how many connections are dropped first
		want    Kind
		tries   int
	}{
		{"not at all", 0, "", 1},
		{"for a moment", 3, "", 4},
		{"always", 99, KindThrottled, throttledTries},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := peer{}
			tries := make(chan struct{}, 99)
			l := peer{handle: func(nc net.Conn) {
				tries <- struct{}{}
				if len(tries) > test.refused {
					p.serve(nc)
				}
			}}
			p.keys = []ssh.Signer{newSigner(t, "ed25519")}
			h := l.listen(t)
			h.HostKeys = []string{keyLine(p.keys[0])}
			client := mustClient(t, Default())
			var pauses []time.Duration
			client.pause = func(_ context.Context, d time.Duration) error {
				pauses = append(pauses, d)
				return nil
			}
			conn, err := client.Connect(t.Context(), h)
			if err == nil {
				defer conn.Close()
			}
			if KindOf(err) != test.want || len(tries) != test.tries || len(pauses) != test.tries-1 {
				t.Errorf("%d tries, %d pauses, %v; want %d, %q", len(tries), len(pauses), err, test.tries,
					test.want)
			}
			for n, pause := range pauses {
				if least := 100 * time.Millisecond << n; pause < least || pause > 3*least {
					t.Errorf("pause %d is %s, want %s to %s", n, pause, least, 3*least)
				}
			}
		})
	}
}

func TestAPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := peer{handle: func(net.Conn) {}}
	h := p.listen(t)
	client := mustClient(t, Default())
	ctx, cancel := context.WithCancel(t.Context())
	client.pause = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return pause(ctx, time.Hour)
	}
	_, err := client.Connect(ctx, h)
	wantKind(t, err, KindCancelled, false, "before that", "too many connections")
}
