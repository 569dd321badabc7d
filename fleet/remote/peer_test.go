package remote

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// peer is an SSH server that does what a test wants, well or badly.
type peer struct {
	keys    []ssh.Signer              // host keys
	auth    func(ssh.PublicKey) error // nil: everybody may log in
	login   func(*ssh.ServerConn)     // called after a login
	channel func(ssh.NewChannel) bool // false: it has dealt with it
	exec    func(*peerSession)        // a command; nil: it ends with 0
	mute    bool                      // answers no global request
	rekey   uint64                    // bytes between key exchanges, 0: the default
	config  func(*ssh.ServerConfig)   // changes what it offers
	handle  func(net.Conn)            // instead of all that: raw bytes
}

// peerSession is a session in which a command was sent. The command is not yet
// accepted.
type peerSession struct {
	ssh.Channel
	conn *ssh.ServerConn
	line string
	req  *ssh.Request
	once sync.Once
}

func (s *peerSession) accept() { s.once.Do(func() { _ = s.req.Reply(true, nil) }) }

func (s *peerSession) exit(code uint32) {
	_, _ = s.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
}

// end accepts the command and ends it, as a good server does.
func (s *peerSession) end(output string, code uint32) {
	s.accept()
	_, _ = io.WriteString(s, output)
	s.exit(code)
	_ = s.Close()
}

// serve serves one connection until it ends.
func (p *peer) serve(nc net.Conn) {
	defer nc.Close()
	if p.handle != nil {
		p.handle(nc)
		return
	}
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if p.auth == nil {
				return nil, nil
			}
			return nil, p.auth(key)
		},
	}
	config.RekeyThreshold = p.rekey
	if p.config != nil {
		p.config(config)
	}
	for _, key := range p.keys {
		config.AddHostKey(key)
	}
	conn, chans, reqs, err := ssh.NewServerConn(nc, config)
	if err != nil {
		return
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	parts.Go(func() {
		for req := range reqs {
			if !p.mute && req.WantReply {
				_ = req.Reply(false, nil)
			}
		}
	})
	if p.login != nil {
		parts.Go(func() { p.login(conn) })
	}
	for opened := range chans {
		if p.channel != nil && !p.channel(opened) {
			continue
		}
		ch, reqs, err := opened.Accept()
		if err != nil {
			continue
		}
		parts.Go(func() { p.requests(&parts, conn, ch, reqs) })
	}
}

func (p *peer) requests(parts *sync.WaitGroup, conn *ssh.ServerConn, ch ssh.Channel,
	reqs <-chan *ssh.Request) {
	for req := range reqs {
		if req.Type != "exec" {
			_ = req.Reply(false, nil)
			continue
		}
		var exec struct{ Line string }
		_ = ssh.Unmarshal(req.Payload, &exec)
		s := &peerSession{Channel: ch, conn: conn, line: exec.Line, req: req}
		parts.Go(func() {
			if p.exec == nil {
				s.end("", 0)
				return
			}
			p.exec(s)
		})
	}
}

// listen lets the peer listen on TCP and returns it as a host.
func (p *peer) listen(t testing.TB) fleet.Host {
	t.Helper()
	h := p.host(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.Address, h.Port = "127.0.0.1", l.Addr().(*net.TCPAddr).Port
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { p.serve(nc) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		conns.Wait()
	})
	return h
}

func (p *peer) host(t testing.TB) fleet.Host {
	h := fleet.Host{Name: "fw001", Address: "peer", Port: 22, User: "root", Key: clientKey(t)}
	if p.keys == nil {
		p.keys = []ssh.Signer{newSigner(t, "ed25519")}
	}
	for _, key := range p.keys {
		h.HostKeys = append(h.HostKeys, keyLine(key))
	}
	return h
}

// piped connects a client to the peer without a network, for tests in a synctest
// bubble, where time is pretended: there sockets never wait.
func (p *peer) piped(t testing.TB, c Config) (*Client, fleet.Host) {
	t.Helper()
	host := p.host(t)
	client := mustClient(t, c)
	var conns sync.WaitGroup
	t.Cleanup(conns.Wait)
	client.dial = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		conns.Go(func() { p.serve(newElastic(theirs)) })
		return ours, nil
	}
	return client, host
}

// elastic is the end of a net.Pipe that can write before the other end reads, as
// a socket can: both sides of SSH begin by writing.
type elastic struct {
	net.Conn
	queue chan []byte
	gone  chan struct{}
	once  sync.Once
}

func newElastic(nc net.Conn) *elastic {
	e := &elastic{Conn: nc, queue: make(chan []byte, 10_000), gone: make(chan struct{})}
	go func() {
		for {
			select {
			case p := <-e.queue:
				if _, err := nc.Write(p); err != nil {
					return
				}
			case <-e.gone:
				return
			}
		}
	}()
	return e
}

func (e *elastic) Write(p []byte) (int, error) {
	select {
	case e.queue <- append([]byte{}, p...):
		return len(p), nil
	case <-e.gone:
		return 0, net.ErrClosed
	}
}

func (e *elastic) Close() error {
	e.once.Do(func() { close(e.gone) })
	return e.Conn.Close()
}

// newSigner makes a key that is a host's or ours.
func newSigner(t testing.TB, kind string) ssh.Signer {
	t.Helper()
	var private any
	var err error
	switch kind {
	case "ed25519":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func keyLine(s ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
}

// clientKey writes a private key and returns its path.
func clientKey(t testing.TB) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return writePrivate(t, private)
}

func writePrivate(t testing.TB, private any) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustClient(t testing.TB, c Config) *Client {
	t.Helper()
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// hasty is a client that comes back at once where it is turned away.
func hasty(t testing.TB) *Client {
	client := mustClient(t, Default())
	client.pause = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
	return client
}

// connect connects with a patient configuration, and closes at the end.
func connect(t testing.TB, h fleet.Host) *Conn {
	t.Helper()
	conn, err := mustClient(t, Default()).Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// wantKind checks an error's kind, whether it says that the command was sent,
// and that it says what it must in words.
func wantKind(t testing.TB, err error, kind Kind, sent bool, words ...string) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %T (%v), want *Error of kind %s", err, err, kind)
	}
	if e.Kind != kind || e.Sent != sent {
		t.Errorf("error is %s, sent %t, want %s, sent %t: %v", e.Kind, e.Sent, kind, sent, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error does not say %q: %v", word, err)
		}
	}
}

// took checks a duration in pretended time, where nothing is inexact.
func took(t testing.TB, start time.Time, want time.Duration) {
	t.Helper()
	if got := time.Since(start); got != want {
		t.Errorf("it took %s, want %s", got, want)
	}
}
