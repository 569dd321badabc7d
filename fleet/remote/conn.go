package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
	"muster/internal/seal"
)

// sessionsMax bounds the sessions of one connection: sshd allows ten, and counts
// one that is just being closed.
const sessionsMax = 8

// askedMax bounds the connections that a jump host was asked for and has not
// answered. Each takes it a file, and sshd has 1,024 by default.
const askedMax = 512

// Conn is a connection to one host, logged in. It is safe for concurrent use,
// but it is one thing: if one of its calls has to give up, the connection is
// closed and the others end too.
type Conn struct {
	cfg  Config
	to   target
	wire *wire
	ssh  ssh.Conn

	about  About
	login  login                                    // without its keys: how long it lasts
	keeper keeper                                   // of records
	again  func(ctx context.Context) (*Conn, error) // connects to the same host once more

	slots   chan struct{} // holds one item a session, for as long as its goroutines live
	asked   chan struct{} // holds one item a connection that it was asked for, as a jump host
	done    chan struct{} // closed when the connection has ended, for whatever reason
	tasks   sync.WaitGroup
	closing sync.Once

	mu    sync.Mutex
	cause error // why we closed it, guarded by mu
}

// A keeper is what there is to know of a host that may keep records of what it runs.
type keeper struct {
	fence fleet.Fence
	user  string // whom commands run as

	login    string    // who is logged in
	become   string    // user, if sudo makes commands run as another user; else empty
	password seal.Text // for sudo, if it asks; see SudoPassword
}

func newConn(h *handshake, conn ssh.Conn, chans <-chan ssh.NewChannel,
	reqs <-chan *ssh.Request) *Conn {
	c := &Conn{
		cfg:   h.cfg,
		to:    h.to,
		wire:  h.wire,
		ssh:   conn,
		about: h.tell(conn),
		login: login{what: h.login.what, until: h.login.until},
		slots: make(chan struct{}, sessionsMax),
		asked: make(chan struct{}, askedMax),
		done:  make(chan struct{}),
	}
	// What the host asks of us must be answered, or the library stops reading.
	c.tasks.Go(func() { ssh.DiscardRequests(reqs) })
	c.tasks.Go(func() { reject(chans) })
	c.tasks.Go(c.keepAlive)
	c.tasks.Go(func() {
		err := c.ssh.Wait()
		c.fail(fmt.Errorf("the connection ended: %w", bare(err)))
		close(c.done)
	})
	return c
}

// Close closes the connection and waits until all that belongs to it has ended.
// Commands that still run on the host go on until their bound. It always
// returns nil and may be called more than once.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		c.fail(errors.New("the connection was closed"))
		c.tasks.Wait()

		// With all slots in our hands there is no session left, nor a new one.
		for range sessionsMax {
			c.slots <- struct{}{}
		}
	})
	return nil
}

// fail closes the network connection. That is the one thing that frees
// everybody: closing a session frees nobody if the host does not answer.
// Only the first cause is kept.
func (c *Conn) fail(cause error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	c.wire.Close()
}

// why returns why the connection was closed, nil if it was not.
func (c *Conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// enter waits for a free session slot.
func (c *Conn) enter(ctx context.Context) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if err := c.why(); err != nil {
		return err // it may not have ended yet, but it will
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	case <-c.done:
		return c.why()
	}
}

// keepAlive asks the host regularly whether it is there, and closes a connection
// on which nothing was heard for two and a half of these periods: so three
// questions, the last of them late. Whatever is heard counts: on a slow line the
// answer may have to wait behind megabytes of output.
func (c *Conn) keepAlive() {
	tick := time.NewTicker(c.cfg.Keepalive)
	defer tick.Stop()

	var questions sync.WaitGroup
	defer questions.Wait()
	var asking atomic.Bool
	for {
		select {
		case <-c.done:
			return
		case <-tick.C:
		}
		if silent := c.wire.silence(); silent >= c.cfg.Keepalive*5/2 {
			c.fail(fmt.Errorf("nothing was heard of it for %s", silent.Round(time.Second)))
			return
		}
		if !asking.CompareAndSwap(false, true) {
			continue
		}
		questions.Go(func() {
			// A refusal is an answer too; an error ends the connection anyway.
			_, _, _ = c.ssh.SendRequest("keepalive@openssh.com", true, nil)
			asking.Store(false)
		})
	}
}

// reject refuses all channels that a host wants to open: we forward nothing.
func reject(chans <-chan ssh.NewChannel) {
	for ch := range chans {
		// The error is that of the connection, which others see too.
		_ = ch.Reject(ssh.Prohibited, "no channels to this side")
	}
}
