package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/internal/sources"
	"muster/scripts"
	"muster/server"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

func TestConfigIsCheckedAtOnce(t *testing.T) {
	t.Parallel()
	if err := server.DefaultConfig().Validate(); err != nil {
		t.Error("default:", err)
	}
	for _, c := range []struct {
		listen, cert, key string
		want              []string // none: good
	}{
		{"127.0.0.1:0", "", "", nil},
		{"localhost:7070", "", "", nil},
		{"[::1]:7070", "", "", nil},
		{"127.8.9.10:7070", "c", "k", nil},
		{"0.0.0.0:7070", "c", "k", nil},
		{"muster.example:7070", "c", "k", nil},
		{"unix:/run/muster.sock", "", "", nil},
		{"unix:/run/muster.sock, 127.0.0.1:7070,unix:/run/other.sock", "", "", nil},
		{"unix:/run/muster.sock,0.0.0.0:7070", "c", "k", nil},

		{"unix:/run/muster.sock,0.0.0.0:7070", "", "", []string{`"0.0.0.0:7070" reaches beyond this machine`}},
		{"unix:/run/muster.sock,", "", "", []string{"want host:port"}},

		{"0.0.0.0:7070", "", "", []string{"beyond this machine: set server.tls.cert"}},
		{":7070", "", "", []string{"beyond this machine"}},
		{"[::]:7070", "", "", []string{"beyond this machine"}},
		{"192.0.2.1:7070", "", "", []string{"beyond this machine"}},
		{"localhost.evil.example:7070", "", "", []string{"beyond this machine"}},
		{"0.0.0.0:7070", "c", "", []string{"want both or none"}},
		{"127.0.0.1", "k", "", []string{"want host:port", "want both or none"}},
		{"127.0.0.1:http", "", "", []string{"want a port from 0 to 65535"}},
		{"127.0.0.1:70700", "", "", []string{"want a port from 0 to 65535"}},
		{"", "", "", []string{"want host:port"}},
		{"unix:muster.sock", "", "", []string{"want an absolute path"}},
		{"unix:/" + strings.Repeat("x", 120), "", "", []string{"at most 107"}},
		{"unix:/run/muster.sock", "c", "k", []string{"needs no server.tls"}},
	} {
		err := server.Config{Listen: c.listen, TLSCert: c.cert, TLSKey: c.key}.Validate()
		if (err == nil) != (len(c.want) == 0) {
			t.Errorf("%.40q: %v", c.listen, err)
			continue
		}
		for _, words := range c.want {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%.40q: %v: want %q", c.listen, err, words)
			}
		}
	}
}

// runFails runs a server that must not come up, and gives its words.
func runFails(t *testing.T, cfg server.Config, inventory func() (*fleet.Inventory, error)) string {
	t.Helper()
	_, redis := redistest.StartMini(t)
	q, err := queuetest.Open(t.Context(), redis)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	catalog, err := scripts.NewCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(cfg, server.Deps{Queue: stores(q), Catalog: catalog, Inventory: given(inventory),
		Log: hclog.NewNullLogger()})
	if err != nil {
		return err.Error()
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
		stop()
		<-ended
		t.Fatal("the server came up")
	case err = <-ended:
	}
	if err == nil {
		t.Fatal("the server ended in order")
	}
	return err.Error()
}

func TestServerDoesNotStart(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "taken"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, c := range []struct {
		name string
		cfg  server.Config
		want string
	}{
		{"bad configuration", server.Config{Listen: ":7070"}, "beyond this machine"},
		{"port taken", server.Config{Listen: taken.Addr().String()},
			fmt.Sprintf("the port is in use by %s (process %d): end that, or listen",
				filepath.Base(os.Args[0]), os.Getpid())},
		{"socket taken", server.Config{Listen: "unix:" + dir + "/taken"}, "another server listens there: process "},
		{"no socket", server.Config{Listen: "unix:" + file}, "there is something else of this name"},
		{"no folder", server.Config{Listen: "unix:" + dir + "/no/such/s"}, "no such file or directory"},
		{"no certificate", server.Config{Listen: "127.0.0.1:0", TLSCert: file, TLSKey: file}, "server.tls: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := runFails(t, c.cfg, nil); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if _, err := os.Stat(file); err != nil {
		t.Error("a file that was in the way is gone:", err)
	}
	got := runFails(t, server.Config{Listen: "127.0.0.1:0"},
		func() (*fleet.Inventory, error) { return nil, errBroken })
	if want := "inventory: " + errBroken.Error(); got != want {
		t.Errorf("broken inventory: got %q, want %q", got, want)
	}
	// The complaint of the inventory stands alone.
	binary := filepath.Join(dir, "binary.yaml")
	if err := os.WriteFile(binary, []byte("\x7fELF\x02\x01\x01\x00\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	from := sources.New(sources.Config{List: []string{binary}, Every: time.Minute})
	got = runFails(t, server.Config{Listen: "127.0.0.1:0"},
		func() (*fleet.Inventory, error) { return from.Read(t.Context(), time.Now()) })
	if want := "inventory: " + binary + " is a binary file: want text in UTF-8, as YAML, INI or JSON"; got != want {
		t.Errorf("a binary as inventory: got %q, want %q", got, want)
	}
}

func TestSocketOfAKilledServerIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	w := start(t, setup{listen: "unix:" + path})
	if res := w.call("GET", "/v1/health", nil, nil); res.StatusCode != 200 {
		t.Error(res.Status)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode of the socket: %v, %v", info.Mode(), err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, pool := selfSigned(t)
	w := start(t, setup{tls: [3]string{cert, key}, listen: "0.0.0.0:0"})
	_, port, _ := net.SplitHostPort(w.server.Addr())
	w.url = "https://127.0.0.1:" + port
	w.client.Transport = &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{RootCAs: pool}}
	res, _ := w.raw("GET", "/v1/health", nil, nil)
	if res.StatusCode != 200 || res.ProtoMajor != 2 {
		t.Errorf("got %s %s", res.Status, res.Proto)
	}
	if !strings.Contains(w.log.String(), "there is no token yet") {
		t.Errorf("nothing is said of tokens: %s", w.log)
	}
	// Plain HTTP is not taken for anything.
	if res, err := http.Get("http://127.0.0.1:" + port + "/v1/health"); err == nil {
		res.Body.Close()
		if res.StatusCode == 200 {
			t.Error("plain HTTP was answered")
		}
	}
}

// selfSigned makes a certificate for 127.0.0.1.
func selfSigned(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key, pool = filepath.Join(dir, "cert"), filepath.Join(dir, "key"), x509.NewCertPool()
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return cert, key, pool
}
