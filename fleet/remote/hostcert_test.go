package remote

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// certificate makes one for key; spoil may change it before it is signed.
func certificate(
	t testing.TB, key ssh.PublicKey, ca ssh.Signer, spoil func(*ssh.Certificate),
) *ssh.Certificate {
	t.Helper()
	c := &ssh.Certificate{
		Key: key, CertType: ssh.HostCert, ValidPrincipals: []string{"127.0.0.1"},
		ValidAfter:  uint64(time.Now().Add(-time.Hour).Unix()),
		ValidBefore: uint64(time.Now().Add(time.Hour).Unix()),
	}
	if spoil != nil {
		spoil(c)
	}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	return c
}

func certified(t testing.TB, key ssh.Signer, cert *ssh.Certificate) ssh.Signer {
	t.Helper()
	signer, err := ssh.NewCertSigner(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func TestHostsWithACertificate(t *testing.T) {
	t.Parallel()
	key, ca, other := newSigner(t, "ed25519"), newSigner(t, "ed25519"), newSigner(t, "ecdsa")
	rsaCA := newSigner(t, "rsa")
	sha1, err := ssh.NewSignerWithAlgorithms(rsaCA.(ssh.AlgorithmSigner), []string{ssh.KeyAlgoRSA})
	if err != nil {
		t.Fatal(err)
	}
	const ok = ""
	for _, test := range []struct {
		name  string
		by    ssh.Signer // ca if nil
		spoil func(*ssh.Certificate)
		host  func(*fleet.Host)
		kind  Kind
		words string
	}{
		{name: "for its address", kind: ok},
		{name: "for its name", spoil: func(c *ssh.Certificate) { c.ValidPrincipals = []string{"x", "fw001"} }},
		{name: "for a principal", spoil: func(c *ssh.Certificate) { c.ValidPrincipals = []string{"a.b"} },
			host: func(h *fleet.Host) { h.Principals = []string{"c", "a.b"} }},
		{name: "without an end", spoil: func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }},
		{name: "by the second of two authorities",
			host: func(h *fleet.Host) { h.HostCAs = append([]string{keyLine(other)}, h.HostCAs...) }},
		{name: "by an RSA authority", by: rsaCA,
			host: func(h *fleet.Host) { h.HostCAs = []string{keyLine(rsaCA)} }},
		{name: "its key is known itself", by: other,
			host: func(h *fleet.Host) { h.HostKeys = []string{keyLine(key)} }},

		{name: "for others", spoil: func(c *ssh.Certificate) { c.ValidPrincipals = []string{"fw002"} },
			kind: KindHostKey, words: `is for ["fw002"], and this host should be ["127.0.0.1" "fw001"]`},
		{name: "for its address, which is no principal", kind: KindHostKey,
			host: func(h *fleet.Host) { h.Principals = []string{"fw.example.com"} }, words: "under principals"},
		{name: "for nobody", spoil: func(c *ssh.Certificate) { c.ValidPrincipals = nil },
			kind: KindHostKey, words: "names no host, so it would do for any"},
		{name: "by a stranger", by: other, kind: KindHostKey,
			words: "is certified by ecdsa-sha2-nistp256 SHA256:"},
		{name: "expired", spoil: func(c *ssh.Certificate) { c.ValidBefore = 1_000_000_000 },
			kind: KindHostKey, words: "ended at 2001-09-09 01:46:40 UTC: have it signed again"},
		{name: "not yet valid", spoil: func(c *ssh.Certificate) { c.ValidAfter = 4_000_000_000 },
			kind: KindHostKey, words: "holds only from 2096-10-02"},
		{name: "never valid", spoil: func(c *ssh.Certificate) { c.ValidAfter = 1<<64 - 1 },
			kind: KindHostKey, words: "holds only from"},
		{name: "its key was revoked", kind: KindHostKey, words: "is revoked in the inventory",
			host: func(h *fleet.Host) { h.Revoked = []string{keyLine(key)} }},
		{name: "its known key was revoked", kind: KindHostKey, words: "is revoked in the inventory",
			host: func(h *fleet.Host) { h.Revoked, h.HostKeys = []string{keyLine(key)}, []string{keyLine(key)} }},
		{name: "its authority was revoked", kind: KindHostKey, words: "which is revoked in the inventory",
			host: func(h *fleet.Host) { h.Revoked = []string{keyLine(ca)} }},
		{name: "with an option that nobody knows", kind: KindHostKey, words: "does not hold",
			spoil: func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"x": "y"} }},
		{name: "of a user", spoil: func(c *ssh.Certificate) { c.CertType = ssh.UserCert },
			kind: KindHostKey, words: "not one of a host"},
		{name: "signed with SHA-1", by: sha1, kind: KindHostKey, words: "signed with SHA-1",
			host: func(h *fleet.Host) { h.HostCAs = []string{keyLine(rsaCA)} }},
		{name: "signed with SHA-1, for an old host", by: sha1,
			host: func(h *fleet.Host) { h.HostCAs, h.Profile = []string{keyLine(rsaCA)}, fleet.ProfileLegacy }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			by := ca
			if test.by != nil {
				by = test.by
			}
			p := peer{keys: []ssh.Signer{certified(t, key, certificate(t, key.PublicKey(), by, test.spoil))}}
			h := p.listen(t)
			h.HostKeys, h.HostCAs = nil, []string{keyLine(ca)}
			if test.host != nil {
				test.host(&h)
			}
			conn, err := mustClient(t, Default()).Connect(t.Context(), h)
			if test.kind != ok {
				wantKind(t, err, test.kind, false, test.words)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if about := conn.About(); about.Authority != describe(by.PublicKey()) ||
				about.HostKey != describe(key.PublicKey()) {
				t.Errorf("the host key is %q, by %q", about.HostKey, about.Authority)
			}
		})
	}
}

// A signature that somebody else made must not do: the library checks the host's own
// only.
func TestAForgedCertificateIsRefused(t *testing.T) {
	t.Parallel()
	key, ca := newSigner(t, "ed25519"), newSigner(t, "ed25519")
	cert := certificate(t, key.PublicKey(), ca, nil)
	cert.ValidPrincipals = []string{"fw001"} // after it was signed
	p := peer{keys: []ssh.Signer{certified(t, key, cert)}}
	h := p.listen(t)
	h.HostKeys, h.HostCAs = nil, []string{keyLine(ca)}
	_, err := mustClient(t, Default()).Connect(t.Context(), h)
	wantKind(t, err, KindHostKey, false, "does not hold", "signature")
}

// A plain key is no certificate, and one with only an authority in the inventory.
func TestAPlainKeyWhereACertificateIsWanted(t *testing.T) {
	t.Parallel()
	p := peer{}
	h := p.listen(t)
	h.HostKeys, h.HostCAs = nil, []string{keyLine(newSigner(t, "ed25519"))}
	_, err := mustClient(t, Default()).Connect(t.Context(), h)
	wantKind(t, err, KindHostKey, false, "offers host keys only for", "a host authority")
}

func TestAHostIsKnownByKeyOrAuthority(t *testing.T) {
	t.Parallel()
	ca, key := newSigner(t, "ed25519"), newSigner(t, "ecdsa")
	p := peer{keys: []ssh.Signer{key}}
	h := p.listen(t)
	h.HostCAs = []string{keyLine(ca)}
	conn, err := mustClient(t, Default()).Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	h.HostKeys = []string{keyLine(newSigner(t, "ecdsa"))}
	_, err = mustClient(t, Default()).Connect(t.Context(), h)
	wantKind(t, err, KindHostKey, false, "its host key is", "and the authority "+describe(ca.PublicKey()))
}

func TestHostKeysAreParsedOnce(t *testing.T) {
	t.Parallel()
	var p parsed
	line := keyLine(newSigner(t, "ed25519"))
	first, err := p.all([]string{line})
	if err != nil {
		t.Fatal(err)
	}
	p.keys[line] = newSigner(t, "ecdsa").PublicKey() // to be told from what is parsed
	again, err := p.all([]string{line})
	if err != nil || again[0].Type() != ssh.KeyAlgoECDSA256 {
		t.Errorf("it was parsed twice (%v)", err)
	}
	for i := range parsedMax {
		p.keys[strings.Repeat("x", i%100)+string(rune(i))] = first[0]
	}
	if _, err := p.all([]string{keyLine(newSigner(t, "ed25519"))}); err != nil || len(p.keys) > parsedMax {
		t.Errorf("%d keys are kept, want at most %d (%v)", len(p.keys), parsedMax, err)
	}
}
