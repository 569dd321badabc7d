package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/server"
)

// authority issues certificates of callers.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string // in PEM
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return authority{cert, key, file}
}

// issue returns a certificate for a caller, as the change says.
func (a authority) issue(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	change(c)
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A caller with a certificate of the configured authority is who that names, with the rights of that
// name; every other certificate lets nobody in.
func TestACertificateNamesItsCaller(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	cert, key, pool := selfSigned(t)
	policy := policyOf(t, "who:\n  - {principal: 'cert:spiffe://muster.example/ci', roles: [viewer]}\n"+
		"  - {principal: os:root, roles: [admin]}\n")
	w := start(t, setup{tls: [3]string{cert, key, ours.file}, listen: "127.0.0.1:0",
		more: func(d *server.Deps) { d.Policy = policy }})
	_, port, _ := net.SplitHostPort(w.server.Addr())
	uri := func(texts ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			for _, text := range texts {
				u, err := url.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				c.URIs = append(c.URIs, u)
			}
		}
	}
	ask := func(certs ...tls.Certificate) (int, string) {
		w.url = "https://127.0.0.1:" + port
		w.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certs}}
		res, text, err := w.try("GET", "/v1/whoami", nil, nil)
		if err != nil {
			return 0, err.Error()
		}
		return res.StatusCode, string(text)
	}
	code, text := ask(ours.issue(t, uri("spiffe://muster.example/ci")))
	var who api.Whoami
	if err := json.Unmarshal([]byte(text), &who); err != nil || code != 200 ||
		who.Principal != "cert:spiffe://muster.example/ci" || who.Proof != "certificate" || who.Expires.IsZero() ||
		strings.Join(who.Verbs, " ") != "see plan" {
		t.Errorf("its own: %d %s", code, text)
	}
	for name, c := range map[string]struct {
		certs []tls.Certificate
		code  int
		want  string
	}{
		"mail": {[]tls.Certificate{ours.issue(t, func(c *x509.Certificate) {
			c.EmailAddresses = []string{"ci@x.example"}
		})}, 200, `"principal":"cert:ci@x.example"`},
		"a name of DNS": {[]tls.Certificate{ours.issue(t, func(c *x509.Certificate) {
			c.DNSNames = []string{"ci.x.example"}
		})}, 200, `"verbs":[]`},
		"none":      {nil, 401, "a token is needed"},
		"two names": {[]tls.Certificate{ours.issue(t, uri("spiffe://a/x", "spiffe://a/y"))}, 401, "has 2 URIs: want one"},
		"no name":   {[]tls.Certificate{ours.issue(t, func(*x509.Certificate) {})}, 401, "names nobody"},
		"a wildcard": {[]tls.Certificate{ours.issue(t, func(c *x509.Certificate) { c.DNSNames = []string{"*.x.example"} })},
			401, "has a wildcard"},
		"another authority": {[]tls.Certificate{theirs.issue(t, uri("spiffe://muster.example/ci"))}, 0, "tls"},
		"for servers": {[]tls.Certificate{ours.issue(t, func(c *x509.Certificate) {
			uri("spiffe://muster.example/ci")(c)
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})}, 0, "tls"},
		"expired": {[]tls.Certificate{ours.issue(t, func(c *x509.Certificate) {
			uri("spiffe://muster.example/ci")(c)
			c.NotAfter = time.Now().Add(-time.Minute)
		})}, 0, "tls"},
	} {
		code, text := ask(c.certs...)
		// A client may leave out a certificate of an authority that the server does not name.
		closed := c.code == 0 && (code == 0 || code == 401)
		if !closed && (code != c.code || !strings.Contains(text, c.want)) {
			t.Errorf("%s: %d %s, want %d %q", name, code, text, c.code, c.want)
		}
	}
}
