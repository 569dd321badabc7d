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
	"muster/internal/group"
	"muster/internal/seal"
)

// sessionsMax bounds the sessions of one connection. sshd allows ten, and still counts a
// session while it is being closed.
const sessionsMax = 8

// askedMax bounds the channels that a jump host was asked for and has not opened yet. Each
// occupies a file descriptor there, and sshd has 1,024 by default.
const askedMax = 512

// Conn is a connection to one host, logged in. It is safe for concurrent use, but all
// calls share its fate: if one of them has to give up, it closes the connection, which
// ends the others too.
type Conn struct {
	cfg  Config
	to   target
	wire *wire
	ssh  ssh.Conn

	about  About
	login  login                                    // without its keys; says how long it is valid
	keeper keeper                                   // what the host needs to keep records
	again  func(ctx context.Context) (*Conn, error) // opens another connection to the same host

	slots   chan struct{} // holds one item for each session until its goroutines end
	asked   chan struct{} // holds one item for each channel that it was asked for as a jump host
	done    chan struct{} // closed when the connection has ended, for any reason
	tasks   group.Group
	closing sync.Once

	mu    sync.Mutex
	cause error // why we closed it; guarded by mu
}

// A keeper holds the settings of a host for records and for sudo.
type keeper struct {
	fence fleet.Fence
	user  string // commands run as this user

	login    string    // login name
	become   string    // the user to whom sudo switches; empty: no sudo
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
	// Requests of the host must be answered, or the library stops reading.
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

// Close closes the connection and waits until all its goroutines have ended. Commands
// that still run on the host continue until their bound. It always returns nil and may be
// called more than once.
func (c *Conn) Close() error {
	c.closing.Do(func() {
		c.fail(errors.New("the connection was closed"))
		c.tasks.Wait()

		// Holding all slots means that no session is left and no new one can start.
		for range sessionsMax {
			c.slots <- struct{}{}
		}
	})
	return nil
}

// fail closes the network connection and keeps the first cause. Only that unblocks everybody who
// waits: closing a session has no effect if the host does not answer.
func (c *Conn) fail(cause error) {
	c.mu.Lock()
	if c.cause == nil {
		c.cause = cause
	}
	c.mu.Unlock()
	c.wire.Close()
}

// why returns why the connection was closed, or nil if it was not.
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

// keepAlive regularly asks the host for a sign of life. It closes the connection after a
// silence of two and a half intervals, which leaves time for three requests, the last one
// late. Any received byte counts, because on a slow line the answer may wait behind
// megabytes of output.
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
			c.fail(fmt.Errorf("it was silent for %s", silent.Round(time.Second)))
			return
		}
		if !asking.CompareAndSwap(false, true) {
			continue
		}
		questions.Go(func() {
			// A refusal is an answer too, and an error ends the connection anyway.
			_, _, _ = c.ssh.SendRequest("keepalive@openssh.com", true, nil)
			asking.Store(false)
		})
	}
}

// reject refuses all channels that a host wants to open, because we forward nothing.
func reject(chans <-chan ssh.NewChannel) {
	for ch := range chans {
		// An error also ends the connection, which reports it.
		_ = ch.Reject(ssh.Prohibited, "no channels to this side")
	}
}
