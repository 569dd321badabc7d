package remote_test

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// These tests ask a real OpenSSH server about the way to it.

// relay is a port that leads to another one, which may change, and counts.
type relay struct {
	to    atomic.Pointer[string]
	count atomic.Int32
}

// startRelay returns h as it is reached through the relay.
func startRelay(t *testing.T, h fleet.Host) (*relay, fleet.Host) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{}
	r.lead(h)
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			r.count.Add(1)
			conns.Go(func() { r.pass(nc) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		conns.Wait()
	})
	h.Address, h.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	return r, h
}

func (r *relay) lead(h fleet.Host) {
	to := net.JoinHostPort(h.Address, fmt.Sprint(h.Port))
	r.to.Store(&to)
}

func (r *relay) pass(nc net.Conn) {
	defer nc.Close()
	other, err := net.Dial("tcp", *r.to.Load())
	if err != nil {
		return
	}
	defer other.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(nc, other)
		_ = nc.Close()
	})
	_, _ = io.Copy(other, nc)
	_ = other.Close()
	back.Wait()
}

func behind(h fleet.Host, jumps ...fleet.Host) fleet.Host {
	for i, j := range jumps {
		hop := j.Hop()
		hop.Name = fmt.Sprintf("jump%d", i+1)
		h.Jump = append(h.Jump, hop)
	}
	return h
}

func newClient(t *testing.T, c remote.Config) *remote.Client {
	t.Helper()
	client, err := remote.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// A jump host counts sessions (MaxSessions), and connections for others are none.
func TestRealJumpHosts(t *testing.T) {
	t.Parallel()
	first := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"MaxSessions 1"}})
	second := sshtest.StartSSHD(t, sshtest.Options{Address: "127.0.0.3",
		Config: []string{"MaxSessions 0"}})
	target := sshtest.StartSSHD(t, sshtest.Options{Address: "127.0.0.4"})
	counted, front := startRelay(t, first.Host)
	client := newClient(t, remote.Default())
	const hosts = 15
	var conns sync.WaitGroup
	for range hosts {
		conns.Go(func() {
			conn, err := client.Connect(t.Context(), behind(target.Host, front, second.Host))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			result, err := conn.Run(t.Context(), remote.Command{
				Shell: `echo "$SSH_CONNECTION"`, Bound: time.Minute})
			// The last jump host is bound to no address, so it comes from that of lo.
			if err != nil || !strings.HasSuffix(string(result.Output.Bytes()),
				fmt.Sprintf(" 127.0.0.4 %d\n", target.Port)) {
				t.Errorf("%q, %v", result.Output.Bytes(), err)
			}
		})
	}
	conns.Wait()
	if n := counted.count.Load(); n != 1 {
		t.Errorf("%d connections to the jump host for %d hosts, want 1", n, hosts)
	}
}

func TestRealJumpHostsThatRefuse(t *testing.T) {
	t.Parallel()
	target := sshtest.StartSSHD(t, sshtest.Options{})
	closed, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := target.Host
	dead.Port = closed.Addr().(*net.TCPAddr).Port
	closed.Close()
	nameless := target.Host
	nameless.Address = "nonsense.invalid"
	for _, test := range []struct {
		config string
		host   fleet.Host
		kind   remote.Kind
		words  string
	}{
		{"AllowTcpForwarding no", target.Host, remote.KindRefused, "AllowTcpForwarding"},
		{"PermitOpen 127.0.0.9:1", target.Host, remote.KindRefused, "PermitOpen"},
		{"LogLevel DEBUG", dead, remote.KindUnreachable, `cannot reach it, and said: "Connection refused"`},
		{"LogLevel DEBUG", nameless, remote.KindUnreachable, "jump host jump1 cannot reach it"},
	} {
		jump := sshtest.StartSSHD(t, sshtest.Options{Address: "127.0.0.3",
			Config: []string{test.config}})
		client := newClient(t, remote.Default())
		_, err := client.Connect(t.Context(), behind(test.host, jump.Host))
		if remote.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%s: got %s, %v, want %s, %q", test.config, remote.KindOf(err), err, test.kind,
				test.words)
		}
	}
}

// Many at once against an sshd that drops from the third on: all get in.
func TestRealMaxStartupsStorm(t *testing.T) {
	t.Parallel()
	for _, most := range []string{"2:100:2", "10:30:100"} {
		sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"MaxStartups " + most}})
		client := newClient(t, remote.Default())
		var conns sync.WaitGroup
		for range 60 {
			conns.Go(func() {
				conn, err := client.Connect(t.Context(), sshd.Host)
				if err != nil {
					t.Errorf("MaxStartups %s: %v", most, err)
					return
				}
				conn.Close()
			})
		}
		conns.Wait()
	}
}

// OpenSSH 9.8 punishes addresses from which logins fail. Where the sshd is older, it is
// enough that it does not know that: what such a one says is in the tests with peers.
func TestRealPenalties(t *testing.T) {
	t.Parallel()
	const line = "PerSourcePenalties authfail:60s min:1s"
	if !sshtest.Knows(t, line) {
		return
	}
	sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{line}})
	stranger := sshd.Host
	stranger.Key, _ = sshtest.NewKey(t)
	client := newClient(t, remote.Default())
	if _, err := client.Connect(t.Context(), stranger); remote.KindOf(err) != remote.KindAuth {
		t.Fatalf("the stranger: %v", err)
	}
	if _, err := client.Connect(t.Context(), sshd.Host); remote.KindOf(err) != remote.KindThrottled {
		t.Errorf("got %s, %v, want throttled", remote.KindOf(err), err)
	}
}

func newAuthority(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	path, public := sshtest.NewKey(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return signer, public
}

func sign(t *testing.T, ca ssh.Signer, c *ssh.Certificate) *ssh.Certificate {
	t.Helper()
	if c.ValidBefore == 0 {
		c.ValidBefore = ssh.CertTimeInfinity
	}
	if err := c.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRealUserCertificates(t *testing.T) {
	t.Parallel()
	ca, public := newAuthority(t)
	dir := t.TempDir()
	trusted := filepath.Join(dir, "ca.pub")
	if err := os.WriteFile(trusted, []byte(public+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{
		"TrustedUserCAKeys " + trusted, "AuthorizedKeysFile none"}})
	certify := func(principal string) fleet.Host {
		h := sshd.Host
		path, line := sshtest.NewKey(t)
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		cert := sign(t, ca, &ssh.Certificate{Key: key, CertType: ssh.UserCert,
			ValidPrincipals: []string{principal}, KeyId: "job-1"})
		h.Key, h.Certificate = path, path+"-cert.pub"
		if err := os.WriteFile(h.Certificate, ssh.MarshalAuthorizedKey(cert), 0o600); err != nil {
			t.Fatal(err)
		}
		return h
	}
	conn := connect(t, certify(sshd.User))
	if _, err := conn.Run(t.Context(), remote.Command{Shell: "true", Bound: time.Minute}); err != nil {
		t.Error(err)
	}
	if err := connectError(t, certify("somebody")); remote.KindOf(err) != remote.KindAuth {
		t.Errorf("a certificate for another user: %v", err)
	}
	if err := connectError(t, sshd.Host); remote.KindOf(err) != remote.KindAuth {
		t.Errorf("a key without certificate: %v", err)
	}
}

func TestRealHostCertificates(t *testing.T) {
	t.Parallel()
	ca, public := newAuthority(t)
	start := func(principal string, until uint64) fleet.Host {
		sshd := sshtest.StartSSHD(t, sshtest.Options{
			Certify: func(key ssh.PublicKey) *ssh.Certificate {
				return sign(t, ca, &ssh.Certificate{Key: key, CertType: ssh.HostCert,
					ValidPrincipals: []string{principal}, ValidBefore: until})
			}})
		h := sshd.Host
		h.Revoked = []string{sshd.HostKey} // to be taken out where it does not matter
		h.HostKeys, h.HostCAs = nil, []string{public}
		return h
	}
	good := start("fw001.example.com", 0)
	good.Principals = []string{"fw001.example.com"}
	if err := connectError(t, good); !strings.Contains(err.Error(), "is revoked") {
		t.Errorf("a revoked key: %v", err)
	}
	good.Revoked = nil
	if about := connect(t, good).About(); about.Authority == "" {
		t.Errorf("no authority: %+v", about)
	}
	good.Principals = []string{"fw002.example.com"}
	if err := connectError(t, good); remote.KindOf(err) != remote.KindHostKey ||
		!strings.Contains(err.Error(), "fw002.example.com") {
		t.Errorf("another host's certificate: %v", err)
	}
	late := start("sshd", uint64(time.Now().Add(-time.Hour).Unix()))
	late.Revoked = nil
	if err := connectError(t, late); remote.KindOf(err) != remote.KindHostKey ||
		!strings.Contains(err.Error(), "ended at") {
		t.Errorf("an expired certificate: %v", err)
	}
}

// Keys are exchanged again and again under a command that talks and listens.
func TestRealRekey(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"RekeyLimit 64K"}})
	config := remote.Default()
	config.Drain = time.Minute // an exit overtakes output that waits for a key exchange
	conn := connectWith(t, config, sshd.Host)
	content := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	result, err := conn.Run(t.Context(), remote.Command{
		Shell: "tee /dev/stderr | sha256sum", Stdin: bytes.NewReader(content), Bound: time.Minute})
	want := fmt.Sprintf("%x  -\n", sha256.Sum256(content))
	if err != nil || !bytes.HasSuffix(result.Output.Bytes(), []byte(want)) ||
		result.Output.Size() != int64(len(content)+len(want)) {
		t.Errorf("%d bytes, code %d, %v; want %d and %q", result.Output.Size(), result.ExitCode, err,
			len(content), want)
	}
}

// A host that is another one in the middle of a task (an address that moved to its
// twin) is not asked to stop the command of the first, nor believed.
func TestRealHostThatSwapsItsKey(t *testing.T) {
	t.Parallel()
	one := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"MaxSessions 1"}})
	two := sshtest.StartSSHD(t, sshtest.Options{Address: "127.0.0.3"})
	relay, host := startRelay(t, one.Host)
	conn := connect(t, host)
	began, stop := make(chan struct{}), make(chan struct{})
	ended := make(chan error)
	go func() {
		_, err := conn.Run(t.Context(), remote.Command{Shell: "cat >/dev/null; sleep 30",
			Stdin: &once{began: began}, Bound: time.Minute, Stop: stop})
		ended <- err
	}()
	<-began
	relay.lead(two.Host)
	close(stop) // needs a second connection, for sessions are out
	err := <-ended
	var e *remote.Error
	if !errors.As(err, &e) || !e.Sent || e.Kind == remote.KindStopped {
		t.Errorf("got %v: nobody can know that it was stopped", err)
	}
	if err := connectError(t, host); remote.KindOf(err) != remote.KindHostKey {
		t.Errorf("the next attempt: %v, want host_key", err)
	}
}

// once says when it is read and then ends.
type once struct {
	began chan struct{}
	once  sync.Once
}

func (o *once) Read([]byte) (int, error) {
	o.once.Do(func() { close(o.began) })
	return 0, io.EOF
}
