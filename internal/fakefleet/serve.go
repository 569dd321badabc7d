package fakefleet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/internal/fakefleet/machine"
)

const (
	// loginGrace bounds the time of a login, with OpenSSH's value.
	loginGrace = 2 * time.Minute

	// sessionsMax bounds the open channels of a connection, with OpenSSH's value.
	sessionsMax = 10

	// acceptPause is the pause after a failed accept, for instance without free descriptors.
	acceptPause = 10 * time.Millisecond
)

func (f *Fleet) accept(l net.Listener) {
	for f.ctx.Err() == nil {
		conn, err := l.Accept()
		if err != nil {
			machine.Pause(f.ctx.Done(), acceptPause)
			continue
		}
		f.work.Go(func() { f.serve(conn.(*net.TCPConn)) })
	}
}

// reset ends a connection with RST, as a crash or a full firewall does.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

func (f *Fleet) serve(conn *net.TCPConn) {
	defer conn.Close()
	defer context.AfterFunc(f.ctx, func() { conn.Close() })()

	h := f.hostAt(conn.LocalAddr())
	if h == nil {
		reset(conn)
		return
	}
	f.log.count(func(s *Stats) { s.Connections++ })
	nth := h.connections.Add(1) - 1
	if !h.power.plug(conn) {
		reset(conn)
		return
	}
	defer h.power.unplug(conn)

	var wire net.Conn = conn
	switch h.personality {
	case Silent:
		_, _ = io.Copy(io.Discard, conn)
		return
	case Throttle:
		if nth%int64(f.config.ThrottleEvery) == 0 {
			reset(conn)
			return
		}
	case LockOut:
		if h.machine.Rules() != "" {
			reset(conn)
			return
		}
	case Drip:
		wire = dripping{conn, f.config.DripEvery, f.ctx.Done()}
	}
	_ = conn.SetDeadline(time.Now().Add(loginGrace))
	sc, chans, reqs, err := ssh.NewServerConn(wire, h.serverConfig())
	if err != nil {
		return // the client sees itself that its login failed
	}
	defer sc.Close()
	_ = conn.SetDeadline(time.Time{})
	f.log.count(func(s *Stats) { s.Logins++ })
	(&line{host: h, conn: conn}).serve(chans, reqs)
}

// serverConfig offers the algorithms on which OpenSSH of Debian 12 and this library would agree.
func (h *host) serverConfig() *ssh.ServerConfig {
	c := &ssh.ServerConfig{ServerVersion: "SSH-2.0-fakefleet"}
	c.KeyExchanges = []string{ssh.KeyExchangeCurve25519, ssh.KeyExchangeECDHP256}
	c.PublicKeyCallback = func(m ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
		if m.User() == h.fleet.config.User && bytes.Equal(k.Marshal(), h.fleet.allowed) {
			return nil, nil
		}
		return nil, errors.New("not the key of this fleet")
	}
	c.AddHostKey(h.key())
	return c
}

// dripping writes one byte at a time.
type dripping struct {
	net.Conn
	every time.Duration
	done  <-chan struct{}
}

func (d dripping) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := d.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
		if !machine.Pause(d.done, d.every) {
			return i + 1, net.ErrClosed
		}
	}
	return len(b), nil
}

// line is a connection after the login.
type line struct {
	host   *host
	conn   *net.TCPConn
	open   atomic.Int32 // sessions
	frozen atomic.Bool  // nothing more is sent
}

func (l *line) serve(chans <-chan ssh.NewChannel, reqs <-chan *ssh.Request) {
	for chans != nil || reqs != nil {
		select {
		case c, ok := <-chans:
			if !ok {
				chans = nil
				continue
			}
			l.channel(c)
		case r, ok := <-reqs:
			if !ok {
				reqs = nil
				continue
			}
			// keepalive@openssh.com, for instance: a refusal is an answer, too.
			if r.WantReply && !l.frozen.Load() {
				_ = r.Reply(false, nil)
			}
		}
	}
}

func (l *line) channel(c ssh.NewChannel) {
	switch {
	case l.host.personality == HangAfterAuth || l.frozen.Load():
	case c.ChannelType() != "session":
		_ = c.Reject(ssh.Prohibited, "open failed")
	case l.open.Load() >= sessionsMax:
		_ = c.Reject(ssh.ConnectionFailed, "open failed")
	default:
		l.open.Add(1)
		l.host.fleet.work.Go(func() {
			defer l.open.Add(-1)
			l.session(c)
		})
	}
}
