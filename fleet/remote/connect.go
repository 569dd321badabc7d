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
// The context bounds only the call: it may end before the connection does. The error is
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

// connect connects to a host, over the jump hosts of the visit. It retries a host that has too
// many connections at the moment. It retries once if the connection to the jump host ended
// meanwhile, because that connection may be hours old and the caller cannot know.
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

// pause waits for d. It returns early with the cause if ctx ends.
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

// visit holds everything that is known before the first try to connect.
type visit struct {
	client *Client
	way    []fleet.Hop
	hop    fleet.Hop
	to     target
	door   string // identifies the sshd, so that logins to the same one are paced together
	jump   bool   // it is a jump host, to which each process of this node may want to log in
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

// aim prepares a visit without trust in any host key.
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

// try connects once. It holds a place at the door until the login has succeeded, because that
// is how long sshd counts the connection as unauthenticated (MaxStartups).
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

// awaiting explains that the call ended while it waited for other logins.
func awaiting(err error) error {
	return fmt.Errorf("%w: it waited for other logins there", err)
}

// hindered reports trouble with a jump host. Its kind applies to the host behind it as well,
// because nothing can reach that host.
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

// handshake turns a network connection into one that is logged in.
type handshake struct {
	*visit
	cfg   Config
	login login
	wire  *wire

	shown     ssh.PublicKey // the key by which the host has proved its identity
	loggingIn atomic.Bool   // true as soon as shown is set
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

// shake sets deadlines on the connection itself, because the timeout of the library only
// covers dialling, and not even that when the caller dials.
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

// hostKey is called when the host has proved that it owns key, at the end of each key
// exchange. In later exchanges the connection is in use, so hostKey must not set a deadline
// then: nobody would remove it. A host that was accepted stays accepted while the connection
// lasts, even if its certificate expires meanwhile; only a key other than the first is
// checked again.
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
