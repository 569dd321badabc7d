package remote

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// Connect opens a connection to h and logs in. The context bounds only this: it
// may end before the connection does. The error is an [Error], and nothing has
// run on the host.
func (c *Client) Connect(ctx context.Context, h fleet.Host) (*Conn, error) {
	to := target{name: h.Name, addr: net.JoinHostPort(h.Address, strconv.Itoa(h.Port))}
	known, err := parseHostKeys(h.HostKeys)
	if err != nil {
		return nil, to.fault("connect", KindHostKey, err)
	}
	login, err := c.login(ctx, h)
	if err != nil {
		return nil, to.fault("connect", cancelledOr(ctx, KindKey), err)
	}
	defer login.close()

	w, err := c.reach(ctx, to)
	if err != nil {
		return nil, err
	}
	hs := handshake{cfg: c.cfg, to: to, known: known, login: login, wire: w}
	conn, err := hs.do(ctx)
	if err != nil {
		return nil, err
	}
	conn.again = func(ctx context.Context) (*Conn, error) { return c.Connect(ctx, h) }
	return conn, nil
}

// reach opens the network connection.
func (c *Client) reach(ctx context.Context, to target) (*wire, error) {
	limited, cancel := context.WithTimeout(ctx, c.cfg.TCP)
	defer cancel()

	nc, err := c.dial(limited, "tcp", to.addr)
	if err != nil {
		kind, err := explainDial(err, c.cfg.TCP)
		return nil, to.fault("connect", cancelledOr(ctx, kind), err)
	}
	return newWire(nc), nil
}

// handshake is the way from a network connection to one that is logged in.
type handshake struct {
	cfg   Config
	to    target
	known hostKeys
	login login
	wire  *wire

	loggingIn atomic.Bool // the host has proved who it is
}

func (h *handshake) do(ctx context.Context) (*Conn, error) {
	stop := context.AfterFunc(ctx, func() { h.wire.Close() })
	conn, chans, reqs, err := h.shake()
	if !stop() {
		h.wire.Close()
		return nil, h.to.fault("connect", KindCancelled, context.Cause(ctx))
	}
	if err != nil {
		h.wire.Close()
		kind, err := h.explain(err)
		return nil, h.to.fault("connect", kind, err)
	}
	return newConn(h, conn, chans, reqs), nil
}

// shake does it under deadlines on the connection itself: the timeout that the
// library knows covers the dialling only, and not even that when we dial.
func (h *handshake) shake() (ssh.Conn, <-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	if err := h.wire.SetDeadline(time.Now().Add(h.cfg.Handshake)); err != nil {
		return nil, nil, nil, err
	}
	conn, chans, reqs, err := ssh.NewClientConn(h.wire, h.to.addr, &ssh.ClientConfig{
		User:              h.login.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(h.login.signers...)},
		HostKeyAlgorithms: h.known.algorithms(),
		HostKeyCallback:   h.hostKey,
		ClientVersion:     "SSH-2.0-muster",
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return conn, chans, reqs, h.wire.SetDeadline(time.Time{})
}

// hostKey is called when the host has proved to own key, at the end of the key
// exchange. It is also called in later exchanges, on a connection that is in
// use: no deadline must be set then, it would never be taken back.
func (h *handshake) hostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	if err := h.known.check(key); err != nil {
		return err
	}
	if h.loggingIn.CompareAndSwap(false, true) {
		return h.wire.SetDeadline(time.Now().Add(h.cfg.Auth))
	}
	return nil
}

func cancelledOr(ctx context.Context, kind Kind) Kind {
	if ctx.Err() != nil {
		return KindCancelled
	}
	return kind
}
