package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// Connect opens a connection to h and logs in, over its jump hosts if it has some.
// The context bounds only this: it may end before the connection does. The error is
// an [Error], and nothing has run on the host.
func (c *Client) Connect(ctx context.Context, h fleet.Host) (*Conn, error) {
	v, err := c.visit(h.Jump, h.Hop())
	if err != nil {
		return nil, err
	}
	conn, err := c.connect(ctx, v)
	if err != nil {
		return nil, err
	}
	become := h.BecomesUser()
	conn.keeper = keeper{fence: h.Fence, user: cmp.Or(become, h.User), login: h.User, become: become}
	conn.again = func(ctx context.Context) (*Conn, error) {
		other, err := c.Connect(ctx, h)
		if err == nil {
			other.keeper.password = conn.keeper.password
		}
		return other, err
	}
	return conn, nil
}

// connect connects to a host behind others. One that has too many at the moment is
// tried again, and one whose jump host hung up meanwhile, once: that connection may be
// hours old. Who comes back from elsewhere must not have to know that.
func (c *Client) connect(ctx context.Context, v *visit) (*Conn, error) {
	for n := 0; ; n++ {
		conn, err := v.try(ctx)
		switch {
		case n == 0 && errors.Is(err, errFell):
			continue
		case KindOf(err) != KindThrottled || n+1 == throttledTries:
			return conn, err
		}
		if cause := c.pause(ctx, throttledPause(n, rand.Float64())); cause != nil {
			return nil, v.to.fault("connect", KindCancelled, fmt.Errorf("%w (before that: %w)", cause, err))
		}
	}
}

// pause waits, or returns why it should not.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// visit is all that is known before a host is tried.
type visit struct {
	client *Client
	way    []fleet.Hop
	hop    fleet.Hop
	to     target
	door   string // which sshd it is, for those who want to log in to the same one
	jump   bool   // others are behind it: each process of this node wants to log in to it
	known  trust
	suite  suite
}

func (c *Client) visit(way []fleet.Hop, h fleet.Hop) (*visit, error) {
	v, err := c.aim(way, h)
	if err != nil {
		return nil, err
	}
	if v.known, err = c.trustIn(h, v.suite.legacy); err != nil {
		return nil, v.to.fault("connect", KindHostKey, err)
	}
	return v, nil
}

// aim is a visit to whoever is there.
func (c *Client) aim(way []fleet.Hop, h fleet.Hop) (*visit, error) {
	v := &visit{client: c, way: way, hop: h}
	v.to = target{name: h.Name, addr: net.JoinHostPort(h.Address, strconv.Itoa(h.Port))}
	v.door = v.to.addr
	for _, hop := range way {
		v.to.jump = append(v.to.jump, hop.Name)
		v.door += " " + hop.Name
	}
	var err error
	if v.suite, err = suiteOf(h.Profile); err != nil {
		return nil, v.to.fault("connect", KindInvalid, err)
	}
	return v, nil
}

// try tries once. It holds a place at the door until it is logged in: that is how
// long sshd counts it among those who only knock.
func (v *visit) try(ctx context.Context) (conn *Conn, failed error) {
	var over *bridge
	if len(v.way) > 0 {
		var err error
		if over, err = v.client.bridges.cross(ctx, v.way); err != nil {
			return nil, v.hindered(ctx, err)
		}
	}
	if err := v.client.logins.enter(ctx, v.door); err != nil {
		v.client.bridges.giveBack(over)
		return nil, v.to.fault("connect", KindCancelled, awaiting(err))
	}
	defer func() { v.client.logins.leave(v.door, KindOf(failed)) }()
	if v.jump {
		place, err := v.client.doors.enter(ctx, v.door)
		if err != nil {
			v.client.bridges.giveBack(over)
			return nil, v.to.fault("connect", KindCancelled, awaiting(err))
		}
		defer func() { place.leave(KindOf(failed)) }()
	}

	login, err := v.client.login(ctx, v.hop, v.suite.legacy)
	if err != nil {
		v.client.bridges.giveBack(over)
		return nil, v.to.fault("connect", cancelledOr(ctx, KindKey), err)
	}
	defer login.close()

	w, err := v.reach(ctx, over)
	if err != nil {
		return nil, err
	}
	hs := handshake{visit: v, cfg: v.client.cfg, login: login, wire: w}
	return hs.do(ctx)
}

// awaiting is why a login was not tried: others were before it.
func awaiting(err error) error {
	return fmt.Errorf("%w: it waited for other logins there", err)
}

// hindered is about a jump host that cannot be used. What is wrong with it is wrong
// with the way to the host.
func (v *visit) hindered(ctx context.Context, err error) error {
	kind := KindOf(err)
	if kind == "" {
		kind = KindCancelled
	}
	return v.to.fault("connect", cancelledOr(ctx, kind), fmt.Errorf("jump host: %w", err))
}

// reach opens the network connection.
func (v *visit) reach(ctx context.Context, over *bridge) (*wire, error) {
	if over != nil {
		nc, kind, err := v.client.bridges.dial(ctx, over, v.hop)
		if err != nil {
			return nil, v.to.fault("connect", cancelledOr(ctx, kind), err)
		}
		return newWire(nc), nil
	}
	limit := v.client.cfg.TCP
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	nc, err := v.client.dial(limited, "tcp", v.to.addr)
	if why := ended(ctx); err != nil && why != nil {
		return nil, v.to.fault("connect", KindCancelled,
			fmt.Errorf("%w: there was no answer to TCP yet", why))
	}
	if err != nil {
		kind, err := explainDial(err, limit)
		return nil, v.to.fault("connect", kind, err)
	}
	return newWire(nc), nil
}

// handshake is the way from a network connection to one that is logged in.
type handshake struct {
	*visit
	cfg   Config
	login login
	wire  *wire

	shown     ssh.PublicKey // by which the host proved who it is
	loggingIn atomic.Bool   // it has
}

func (h *handshake) do(ctx context.Context) (*Conn, error) {
	stop := context.AfterFunc(ctx, func() { h.wire.Close() })
	conn, chans, reqs, err := h.shake()
	if !stop() {
		h.wire.Close()
		return nil, h.to.fault("connect", KindCancelled,
			fmt.Errorf("%w: the login was not finished yet", ended(ctx)))
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
		Config:            h.suite.config,
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
// use: no deadline must be set then, it would never be taken back. And a host that
// was accepted stays so while the connection lasts, also when its certificate ends;
// another key than the first is looked at anew.
func (h *handshake) hostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	again := h.loggingIn.Load()
	if again && bytes.Equal(key.Marshal(), h.shown.Marshal()) {
		return nil
	}
	if err := h.known.check(key, time.Now()); err != nil {
		return err
	}
	if again {
		return nil
	}
	h.shown = key
	h.loggingIn.Store(true)
	return h.wire.SetDeadline(time.Now().Add(h.cfg.Auth))
}

func cancelledOr(ctx context.Context, kind Kind) Kind {
	if ctx.Err() != nil {
		return KindCancelled
	}
	return kind
}
