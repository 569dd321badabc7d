package remote

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

func TestPeersThatDoNotShakeHands(t *testing.T) {
	t.Parallel()
	say := func(text string) func(net.Conn) {
		return func(nc net.Conn) {
			_, _ = io.WriteString(nc, text)
			// Closing with unread input would be a reset that takes the text along.
			_ = nc.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, nc)
		}
	}
	for _, test := range []struct {
		name   string
		handle func(net.Conn)
		kind   Kind
		words  string
	}{
		{"closes at once", say(""), KindThrottled, "saying nothing: too many connections"},
		{"resets at once", func(nc net.Conn) {
			_ = nc.(*net.TCPConn).SetLinger(0)
		}, KindThrottled, "too many connections"},
		{"is full", say("Exceeded MaxStartups\r\n"), KindThrottled, `saying "Exceeded MaxStartups"`},
		{"punishes", say("Not allowed at this time\r\n"), KindThrottled, "a penalty"},
		{"speaks HTTP", say("HTTP/1.1 400 Bad Request\r\n\r\n"), KindUnreachable,
			`is it the right port? It said "HTTP/1.1 400 Bad Request"`},
		{"greets for ever", say(strings.Repeat("welcome\r\n", 10_000)), KindUnreachable,
			`It said "welcome"`},
		{"never ends a line", say(strings.Repeat("x", 100_000)), KindUnreachable, "no SSH greeting"},
		{"speaks in escapes", say("\x1b]0;owned\x07\r\n"), KindUnreachable, `\x1b]0;owned\x07`},
		{"closes in the key exchange", say("SSH-2.0-OpenSSH_9.2\r\n"), KindUnreachable,
			"key exchange: "},
		{"speaks rubbish in the key exchange", say("SSH-2.0-x\r\n" + strings.Repeat("\xff", 999)),
			KindUnreachable, "key exchange: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := peer{handle: test.handle}
			_, err := hasty(t).Connect(t.Context(), p.listen(t))
			wantKind(t, err, test.kind, false, test.words)
			if strings.Contains(err.Error(), "->") {
				t.Errorf("the error names our own port: %v", err)
			}
		})
	}
}

func TestHostsThatCannotBeReached(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free := l.Addr().(*net.TCPAddr).Port
	l.Close()
	p := peer{}
	h := p.host(t)
	h.Address, h.Port = "127.0.0.1", free
	_, err = mustClient(t, Default()).Connect(t.Context(), h)
	wantKind(t, err, KindUnreachable, false,
		fmt.Sprintf("connect fw001 (127.0.0.1:%d): connection refused: does sshd run", free))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the cause is lost: %v", err)
	}
}

// A name may have several addresses, and the first of them lead nowhere.
func TestANameMayHaveAnAddressThatLeadsNowhere(t *testing.T) {
	t.Parallel()
	p := peer{}
	h := p.listen(t) // on 127.0.0.1 alone
	h.Address = "localhost"
	conn, err := mustClient(t, Default()).Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// Text of the host before the login is meant for people at a terminal; here is no terminal.
func TestBannersAreDropped(t *testing.T) {
	t.Parallel()
	p := peer{config: func(c *ssh.ServerConfig) {
		c.BannerCallback = func(ssh.ConnMetadata) string { return strings.Repeat("\x1b]0;owned\a", 20_000) }
		login, tries := c.PublicKeyCallback, 0
		c.PublicKeyCallback = func(m ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
			if tries++; tries < 4 {
				return nil, &ssh.BannerError{Err: errors.New("no"), Message: strings.Repeat("x", 200_000)}
			}
			return login(m, k)
		}
	}}
	_, err := mustClient(t, Default()).Connect(t.Context(), p.listen(t))
	wantKind(t, err, KindAuth, false, "was refused")
	if len(err.Error()) > 1000 || strings.Contains(err.Error(), "owned") {
		t.Errorf("the banner is repeated: %.300v", err)
	}
}

func TestDialErrorsAreExplained(t *testing.T) {
	t.Parallel()
	errno := func(e syscall.Errno) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", e)}
	}
	for _, test := range []struct {
		err   error
		kind  Kind
		words string
	}{
		{errno(syscall.EHOSTUNREACH), KindUnreachable, "no route to host"},
		{errno(syscall.ENETUNREACH), KindUnreachable, "network is unreachable"},
		{errno(syscall.ECONNRESET), KindThrottled, "too many connections at once"},
		{errno(syscall.ETIMEDOUT), KindUnreachable, "no answer to TCP within 10s"},
		{errno(syscall.EMFILE), KindNode, "this node cannot open a connection: too many open files"},
		{errno(syscall.EADDRNOTAVAIL), KindNode, "this node"},
		{&net.DNSError{Err: "no such host", Name: "fw9", IsNotFound: true}, KindUnreachable, "lookup fw9"},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, KindUnreachable, "within 10s"},
		{errors.New("something else"), KindUnreachable, "something else"},
	} {
		kind, err := explainDial(test.err, 10*time.Second)
		if kind != test.kind || !strings.Contains(err.Error(), test.words) {
			t.Errorf("%v: got %s, %v, want %s, %q", test.err, kind, err, test.kind, test.words)
		}
	}
}

func TestAHostIsKnownByItsKeysOnly(t *testing.T) {
	t.Parallel()
	ed, ecdsa, rsaKey := newSigner(t, "ed25519"), newSigner(t, "ecdsa"), newSigner(t, "rsa")
	other := newSigner(t, "ed25519")
	for _, test := range []struct {
		name  string
		has   []ssh.Signer
		known []ssh.Signer
		kind  Kind
		words []string
	}{
		{name: "the one", has: []ssh.Signer{ed}, known: []ssh.Signer{ed}},
		{name: "one of several", has: []ssh.Signer{ecdsa}, known: []ssh.Signer{ed, ecdsa}},
		{name: "only ed25519 known of three", has: []ssh.Signer{rsaKey, ecdsa, ed}, known: []ssh.Signer{ed}},
		{name: "only rsa known of three", has: []ssh.Signer{ed, ecdsa, rsaKey}, known: []ssh.Signer{rsaKey}},
		{
			name: "another key of the same type", has: []ssh.Signer{other}, known: []ssh.Signer{ed},
			kind: KindHostKey,
			words: []string{"its host key is ssh-ed25519 " + ssh.FingerprintSHA256(other.PublicKey()),
				"the inventory has ssh-ed25519 " + ssh.FingerprintSHA256(ed.PublicKey()),
				"put its new key into the inventory"},
		},
		{
			name: "no key of that type", has: []ssh.Signer{ecdsa, rsaKey}, known: []ssh.Signer{ed},
			kind: KindHostKey,
			words: []string{`only for ["ecdsa-sha2-nistp256" "rsa-sha2-256" "rsa-sha2-512"`,
				"the inventory has ssh-ed25519"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := peer{keys: test.has}
			h := p.listen(t)
			h.HostKeys = nil
			for _, key := range test.known {
				h.HostKeys = append(h.HostKeys, keyLine(key))
			}
			conn, err := mustClient(t, Default()).Connect(t.Context(), h)
			if test.kind != "" {
				wantKind(t, err, test.kind, false, test.words...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		})
	}
}

func TestHostKeysOfAnInventoryAreChecked(t *testing.T) {
	t.Parallel()
	good := keyLine(newSigner(t, "ed25519"))
	for _, line := range []string{good, good + " root@fw001", keyLine(newSigner(t, "rsa"))} {
		if err := CheckHostKey(line); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	dsa := "ssh-dss AAAAB3NzaC1kc3MAAAADAQABAAAAAwEAAQAAAAMBAAEAAAADAQAB"
	for _, line := range []string{
		"", "nonsense", "ssh-ed25519", "ssh-ed25519 AAAA", good + "\n" + good, "no-pty " + good, dsa,
		"-oProxyCommand=reboot", "ssh-ed25519 " + strings.Repeat("A", 10_000),
	} {
		if err := CheckHostKey(line); err == nil || len(err.Error()) > 300 {
			t.Errorf("%q: got %v, want a short error", line, err)
		}
	}

	p := peer{}
	h := p.host(t)
	h.HostKeys = []string{"bad one", "bad two"}
	_, err := mustClient(t, Default()).Connect(t.Context(), h)
	wantKind(t, err, KindHostKey, false, "bad one", "bad two")
	h.HostKeys = nil
	_, err = mustClient(t, Default()).Connect(t.Context(), h)
	wantKind(t, err, KindHostKey, false, "the inventory has no host key for it")
}

// An RSA key must not be proved with SHA-1, which a library may still accept.
func TestHostKeyAlgorithmsComeFromTheKnownKeys(t *testing.T) {
	t.Parallel()
	known, err := mustClient(t, Default()).trustIn(fleet.Hop{HostKeys: []string{
		keyLine(newSigner(t, "rsa")), keyLine(newSigner(t, "ecdsa"))}}, false)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoECDSA256}
	if diff := cmp.Diff(want, known.algorithms()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Key exchanges come again on a connection in use, and with each the host key is
// checked again: the deadline of the login must not come back with it.
func TestALaterKeyExchangeSetsNoDeadline(t *testing.T) {
	t.Parallel()
	wire := &deadlines{}
	key := newSigner(t, "ed25519").PublicKey()
	known := &visit{known: trust{keys: hostKeys{key}}}
	h := handshake{visit: known, cfg: Default(), wire: newWire(wire)}
	for range 3 {
		if err := h.hostKey("", nil, key); err != nil {
			t.Fatal(err)
		}
	}
	if wire.set != 1 {
		t.Errorf("the deadline was set %d times, want once", wire.set)
	}
}

type deadlines struct {
	net.Conn
	set int
}

func (d *deadlines) SetDeadline(time.Time) error {
	d.set++
	return nil
}

func TestAConnectionThatEndsInTheLoginIsNoRefusal(t *testing.T) {
	t.Parallel()
	var nc net.Conn
	p := peer{auth: func(ssh.PublicKey) error {
		nc.Close()
		return nil
	}}
	l := peer{handle: func(c net.Conn) {
		nc = c
		p.serve(c)
	}}
	p.keys = []ssh.Signer{newSigner(t, "ed25519")}
	h := l.listen(t)
	h.HostKeys = []string{keyLine(p.keys[0])}
	_, err := mustClient(t, Default()).Connect(t.Context(), h)
	wantKind(t, err, KindUnreachable, false, "connection ended during login")
}

func TestConfigTellsAllMistakes(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Errorf("the defaults are wrong: %v", err)
	}
	_, err := New(Config{OutputMax: 1, Idle: 48 * time.Hour})
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{
		"tcp = 0s", "handshake", "auth", "channel", "idle = 48h", "drain", "keepalive",
		"jump_idle", "output_max = 1",
		"record_dir",
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %q: %v", name, err)
		}
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	cause := errors.New("cause")
	err := fmt.Errorf("around: %w", target{name: "a", addr: "b:1"}.fault("run", KindLost, cause))
	if KindOf(err) != KindLost || !errors.Is(err, cause) {
		t.Errorf("kind %q or cause is lost", KindOf(err))
	}
	if KindOf(cause) != "" || KindOf(nil) != "" {
		t.Error("errors of others have no kind")
	}
}
