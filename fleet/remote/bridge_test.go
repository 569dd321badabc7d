package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// forwarder is a jump host: it forwards to what is asked for, as sshd does.
type forwarder struct {
	peer
	connections atomic.Int32 // how many were logged in to it in all
	dial        func(address string) (net.Conn, error)

	mu   sync.Mutex
	open []*ssh.ServerConn // guarded by mu
}

func newForwarder() *forwarder {
	f := &forwarder{dial: func(address string) (net.Conn, error) { return net.Dial("tcp", address) }}
	f.login = func(conn *ssh.ServerConn) {
		f.connections.Add(1)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.open = append(f.open, conn)
	}
	f.channel = func(asked ssh.NewChannel) bool {
		if asked.ChannelType() != "direct-tcpip" {
			return true
		}
		go f.forward(asked)
		return false
	}
	return f
}

// cut ends all connections to the jump host.
func (f *forwarder) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, conn := range f.open {
		conn.Close()
	}
	f.open = nil
}

func (f *forwarder) forward(asked ssh.NewChannel) {
	nc, err := f.dial(askedFor(asked.ExtraData()))
	if err != nil {
		_ = asked.Reject(ssh.ConnectionFailed, bare(err).Error())
		return
	}
	defer nc.Close()
	ch, reqs, err := asked.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	go ssh.DiscardRequests(reqs)
	var copies sync.WaitGroup
	copies.Go(func() {
		_, _ = io.Copy(nc, ch)
		_ = nc.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(ch, nc)
	_ = ch.Close()
	copies.Wait()
}

// askedFor reads the address out of a request for a connection.
func askedFor(payload []byte) string {
	n := binary.BigEndian.Uint32(payload)
	return net.JoinHostPort(string(payload[4:4+n]), fmt.Sprint(binary.BigEndian.Uint32(payload[4+n:])))
}

func behindOf(h fleet.Host, jumps ...fleet.Host) fleet.Host {
	for i, j := range jumps {
		hop := j.Hop()
		hop.Name = fmt.Sprintf("jump%d", i+1)
		h.Jump = append(h.Jump, hop)
	}
	return h
}

func TestHostsBehindAJumpHostShareOneConnection(t *testing.T) {
	t.Parallel()
	jump, target := newForwarder(), peer{exec: func(s *peerSession) { s.end("hello\n", 0) }}
	h := behindOf(target.listen(t), jump.listen(t))
	client := mustClient(t, Default())
	var conns sync.WaitGroup
	for i := range 20 {
		conns.Go(func() {
			h := h
			h.Name = fmt.Sprintf("fw%03d", i)
			conn, err := client.Connect(t.Context(), h)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			result, err := conn.Run(t.Context(), Command{Shell: "true", Bound: time.Minute})
			if err != nil || string(result.Output.Bytes()) != "hello\n" {
				t.Errorf("%+v, %v", result, err)
			}
			if jumps := conn.About().Jump; len(jumps) != 1 || jumps[0] != "jump1" {
				t.Errorf("the way is %q", jumps)
			}
		})
	}
	conns.Wait()
	if n := jump.connections.Load(); n != 1 {
		t.Errorf("%d connections to the jump host, want 1", n)
	}
}

func TestAChainOfJumpHosts(t *testing.T) {
	t.Parallel()
	one, two, three, target := newForwarder(), newForwarder(), newForwarder(), peer{}
	hosts := []fleet.Host{one.listen(t), two.listen(t), three.listen(t)}
	last := target.listen(t)
	client := mustClient(t, Default())
	for n := range hosts {
		conn, err := client.Connect(t.Context(), behindOf(last, hosts[:n+1]...))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	for i, f := range []*forwarder{one, two, three} {
		if n := f.connections.Load(); n != 1 {
			t.Errorf("jump host %d has %d connections, want 1 for all that pass it", i+1, n)
		}
	}
}

func TestABridgeThatFellIsMadeAgain(t *testing.T) {
	t.Parallel()
	jump, target := newForwarder(), peer{exec: func(s *peerSession) { s.accept() }}
	h := behindOf(target.listen(t), jump.listen(t))
	client := mustClient(t, Default())
	conn, err := client.Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lost := make(chan error)
	go func() {
		_, err := conn.Run(t.Context(), Command{Shell: "sleep 60", Bound: time.Minute})
		lost <- err
	}()
	jump.cut()
	err = <-lost
	if kind := KindOf(err); kind != KindLost && kind != KindUnreachable {
		t.Errorf("the command behind it ended with %v", err)
	}
	second, err := client.Connect(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if n := jump.connections.Load(); n != 2 {
		t.Errorf("%d connections to the jump host, want a second one", n)
	}
}

// The connection may have been dead for long when the next one comes.
func TestABridgeThatFallsWhenItIsUsedIsMadeAgain(t *testing.T) {
	t.Parallel()
	jump, target := newForwarder(), peer{}
	forward := jump.channel
	var asked atomic.Int32
	jump.channel = func(c ssh.NewChannel) bool {
		if asked.Add(1) == 2 {
			jump.cut()
			return false
		}
		return forward(c)
	}
	h := behindOf(target.listen(t), jump.listen(t))
	client := mustClient(t, Default())
	for range 3 {
		conn, err := client.Connect(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
	if n := jump.connections.Load(); n != 2 || asked.Load() != 4 {
		t.Errorf("%d connections, asked %d times, want 2 and 4", n, asked.Load())
	}
}

func TestABridgeThatNobodyUsesIsClosed(t *testing.T) {
	t.Parallel()
	jump, target := newForwarder(), peer{}
	gone := make(chan struct{}, 1)
	login := jump.login
	jump.login = func(conn *ssh.ServerConn) {
		login(conn)
		_ = conn.Wait()
		gone <- struct{}{}
	}
	h := behindOf(target.listen(t), jump.listen(t))
	config := Default()
	config.JumpIdle = time.Millisecond
	client := mustClient(t, config)
	for range 2 {
		conn, err := client.Connect(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		<-gone
	}
	if n := jump.connections.Load(); n != 2 {
		t.Errorf("%d connections, want one for each time", n)
	}
}

func TestTroubleOnTheWayIsExplained(t *testing.T) {
	t.Parallel()
	target := peer{}
	last := target.listen(t)
	refuse := func(reason ssh.RejectionReason, words string) *forwarder {
		f := newForwarder()
		f.channel = func(c ssh.NewChannel) bool {
			_ = c.Reject(reason, words)
			return false
		}
		return f
	}
	stranger := newForwarder()
	stranger.auth = func(ssh.PublicKey) error { return errors.New("no") }
	for _, test := range []struct {
		name  string
		jump  *forwarder
		spoil func(*fleet.Host)
		kind  Kind
		words []string
	}{
		{name: "forbidden", jump: refuse(ssh.Prohibited, "open failed"), kind: KindRefused,
			words: []string{"jump host jump1 does not forward there (AllowTcpForwarding, ", `said: "open failed"`}},
		{name: "dead host", jump: refuse(ssh.ConnectionFailed, "Connection timed out"),
			kind: KindUnreachable, words: []string{"jump host jump1 cannot reach it, and said: \"Connection timed out\""}},
		{name: "no files", jump: refuse(ssh.ConnectionFailed, "Too many open files"), kind: KindThrottled,
			words: []string{"jump host jump1 has no room"}},
		{name: "no room", jump: refuse(ssh.ResourceShortage, ""), kind: KindThrottled},
		{name: "escapes", jump: refuse(ssh.ConnectionFailed, "\x1b]0;x"), kind: KindUnreachable,
			words: []string{`\x1b]0;x`}},
		{name: "no login", jump: stranger, kind: KindAuth,
			words: []string{"connect fw001 (", "jump host: connect jump1 (", `login as "root"`}},
		{name: "another key", jump: newForwarder(), kind: KindHostKey,
			spoil: func(h *fleet.Host) { h.Jump[0].HostKeys = h.HostKeys },
			words: []string{"jump host: connect jump1", "its host key is"}},
		{name: "no key file", jump: newForwarder(), kind: KindKey,
			spoil: func(h *fleet.Host) { h.Jump[0].Key = "/nonsense" }},
		{name: "nobody there", jump: newForwarder(), kind: KindUnreachable,
			spoil: func(h *fleet.Host) { h.Jump[0].Address = "127.0.0.9" },
			words: []string{"jump host: connect jump1 (127.0.0.9", "refused"}},
		{name: "port is closed", jump: newForwarder(), kind: KindUnreachable,
			spoil: func(h *fleet.Host) { h.Address = "127.0.0.9" },
			words: []string{"jump host jump1 cannot reach it, and said: \"connection refused\""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := behindOf(last, test.jump.listen(t))
			if test.spoil != nil {
				test.spoil(&h)
			}
			_, err := hasty(t).Connect(t.Context(), h)
			wantKind(t, err, test.kind, false, test.words...)
		})
	}
}

// If the first caller gives up, the others that wait for the same bridge still get it.
func TestABridgeIsMadeForAllWhoWait(t *testing.T) {
	t.Parallel()
	asked, let := make(chan struct{}, 9), make(chan struct{})
	jump := newForwarder()
	jump.auth = func(ssh.PublicKey) error {
		asked <- struct{}{}
		<-let
		return nil
	}
	target := peer{}
	h := behindOf(target.listen(t), jump.listen(t))
	config := Default()
	config.Auth = time.Hour
	client := mustClient(t, config)
	first, cancel := context.WithCancelCause(t.Context())
	ends := make(chan error)
	go func() {
		_, err := client.Connect(first, h)
		ends <- err
	}()
	<-asked
	second, err := client.bridges.take(h.Jump) // waits, as a second Connect would
	if err != nil {
		t.Fatal(err)
	}
	cancel(errors.New("changed my mind"))
	wantKind(t, <-ends, KindCancelled, false, "changed my mind")
	close(let)
	<-second.ready
	if second.err != nil {
		t.Errorf("it was given up with the first: %v", second.err)
	}
	client.bridges.giveBack(second)
	if n := jump.connections.Load(); n > 1 {
		t.Errorf("%d connections", n)
	}
}

// A bridge that all have given up on is not finished.
func TestABridgeThatNobodyWaitsForIsGivenUp(t *testing.T) {
	t.Parallel()
	came, gone := make(chan struct{}), make(chan struct{})
	jump := peer{handle: func(nc net.Conn) {
		close(came)
		_, _ = io.Copy(io.Discard, nc)
		close(gone)
	}}
	target := peer{}
	h := behindOf(target.listen(t), jump.listen(t))
	ctx, cancel := context.WithCancel(t.Context())
	client := mustClient(t, Default())
	ends := make(chan error)
	go func() {
		_, err := client.Connect(ctx, h)
		ends <- err
	}()
	<-came
	cancel()
	wantKind(t, <-ends, KindCancelled, false)
	<-gone
}

// A jump host that answers nothing more must not hold anybody longer than its
// deadlines say, although a channel has none.
func TestDeadlinesHoldBehindAJumpHost(t *testing.T) {
	t.Parallel()
	silent := func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) }
	for _, test := range []struct {
		name   string
		jump   func(ssh.NewChannel) bool
		target func(net.Conn)
		freeze bool // the jump host, once the host behind it was dialled
		words  string
	}{
		{name: "no answer to the request", jump: func(ssh.NewChannel) bool { return false },
			words: "no answer to TCP from behind jump host jump1 within"},
		{name: "a silent host", target: silent, words: "no SSH greeting within"},
		{name: "a silent host behind a frozen jump host", target: silent, freeze: true,
			words: "no SSH greeting within"},
		{name: "a host that hangs in the key exchange", target: func(nc net.Conn) {
			_, _ = io.WriteString(nc, "SSH-2.0-x\r\n")
			silent(nc)
		}, words: "key exchange not finished within"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			jump, ice := newForwarder(), newIce()
			target := peer{handle: func(nc net.Conn) {
				if _, err := nc.Read(make([]byte, 1)); err == nil && test.freeze {
					ice.freeze() // what was read says that the way is open
				}
				test.target(nc)
			}}
			if test.jump != nil {
				jump.channel = test.jump
			}
			h := behindOf(target.listen(t), jump.listen(t))
			config := Default()
			config.Channel = 200 * time.Millisecond
			client := mustClient(t, config)
			client.dial = ice.dial
			bridge, err := client.bridges.cross(t.Context(), h.Jump)
			if err != nil {
				t.Fatal(err)
			}
			defer client.bridges.giveBack(bridge)
			// Only now: the jump host must get through also on a busy machine.
			client.cfg.TCP, client.cfg.Handshake = 200*time.Millisecond, 200*time.Millisecond
			_, err = client.Connect(t.Context(), h)
			wantKind(t, err, KindUnreachable, false, test.words)
		})
	}
}

// ice is a network that can freeze: then nothing comes through any more.
type ice struct {
	frozen chan struct{}
	once   sync.Once
}

func newIce() *ice { return &ice{frozen: make(chan struct{})} }

func (i *ice) freeze() { i.once.Do(func() { close(i.frozen) }) }

func (i *ice) dial(ctx context.Context, network, address string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &icy{Conn: nc, ice: i, closed: make(chan struct{})}, nil
}

type icy struct {
	net.Conn
	ice    *ice
	closed chan struct{}
	once   sync.Once
}

func (c *icy) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if isClosed(c.ice.frozen) && err == nil {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *icy) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
