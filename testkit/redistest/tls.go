package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"muster/jobs/queue"
)

// Certs are the files of an authority and of one certificate of it, which is good
// for servers called "redis" or 127.0.0.1, and for clients.
type Certs struct{ CA, Cert, Key string }

// MakeCerts makes an authority of its own and a certificate that ends then.
func MakeCerts(t testing.TB, end time.Time) Certs {
	t.Helper()
	dir := t.TempDir()
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	one := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: end, DNSNames: []string{"redis"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	ca, err := x509.CreateCertificate(rand.Reader, authority, authority, &caKey.PublicKey, caKey)
	must(t, err)
	cert, err := x509.CreateCertificate(rand.Reader, one, authority, &key.PublicKey, caKey)
	must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(dir, name)
		text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
		must(t, os.WriteFile(path, text, 0o600))
		return path
	}
	return Certs{CA: write("ca.pem", "CERTIFICATE", ca), Cert: write("cert.pem", "CERTIFICATE", cert),
		Key: write("key.pem", "PRIVATE KEY", private)}
}

// ServerArgs let a server speak TLS, and want a certificate of its callers.
func (c Certs) ServerArgs() []string {
	return []string{"--tls-cert-file", c.Cert, "--tls-key-file", c.Key, "--tls-ca-cert-file", c.CA,
		"--tls-replication", "yes", "--tls-cluster", "yes"}
}

// OnlyArgs make a server speak nothing but TLS.
func (c Certs) OnlyArgs() []string { return append(c.ServerArgs(), tlsPort, "0") }

// tlsPort is a port with TLS; which one it is, StartServer says.
const tlsPort = "--tls-port"

// Reach returns cfg for servers with OnlyArgs.
func (c Certs) Reach(cfg queue.Config) queue.Config {
	cfg.TLS = queue.TLS{On: true, CA: c.CA, Cert: c.Cert, Key: c.Key}
	return cfg
}

// secure has the servers that speak nothing but TLS: address to *tls.Config.
var secure sync.Map

// ports returns the last arguments of a server: its ports.
func ports(t testing.TB, args []string, addr string) []string {
	_, port, _ := net.SplitHostPort(addr)
	if !slices.Contains(args, tlsPort) {
		return []string{"--port", port}
	}
	pool := x509.NewCertPool()
	ca, err := os.ReadFile(field(args, "--tls-ca-cert-file"))
	must(t, err)
	pool.AppendCertsFromPEM(ca)
	pair, err := tls.LoadX509KeyPair(field(args, "--tls-cert-file"), field(args, "--tls-key-file"))
	must(t, err)
	secure.Store(addr, &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})
	return []string{"--port", "0", tlsPort, port}
}

// tlsOf returns the TLS configuration for one of our servers; nil: plain text.
func tlsOf(addr string) *tls.Config {
	c, _ := secure.Load(addr)
	config, _ := c.(*tls.Config)
	return config
}
