package proc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// MaxFrame bounds one message, in bytes. The largest is a hand-over with the
	// specs of its tasks, and a spec may carry a ruleset.
	MaxFrame = 64 << 20

	// sendWait bounds one Send to a peer that does not read.
	sendWait = 30 * time.Second

	// lastWords bounds how long a Conn can still be read after Expire. The peer's messages are in
	// the socket by then; the time is for a reader on a busy machine.
	lastWords = time.Second

	readSize = 32 << 10 // bytes
)

// ErrDetached says that a Conn or a Child was detached, for an exec in place.
var ErrDetached = errors.New("detached")

// A Conn carries messages between a parent and its child: JSON, one a line. All
// of its methods may be called at the same time.
type Conn struct {
	c        *net.UnixConn
	max      int // bytes of a message
	detached atomic.Bool

	wmu sync.Mutex // one frame at a time

	rmu sync.Mutex
	buf []byte // read from the socket, but not received yet; guarded by rmu
}

// newConn takes f over, whose socket has already given unread. It closes f.
func newConn(f *os.File, unread []byte) (*Conn, error) {
	defer f.Close()
	c, err := net.FileConn(f) // has its own copy of f
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("a %T, want a unix socket", c)
	}
	return &Conn{c: u, max: MaxFrame, buf: unread}, nil
}

// Send writes one message. After an error the peer may have a part of it, so
// nothing more can be sent.
func (c *Conn) Send(v any) error {
	frame, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("send %T: %w", v, err)
	}
	if len(frame) > c.max {
		return fmt.Errorf("send %T: %d bytes, at most %d", v, len(frame), c.max)
	}

	c.wmu.Lock()
	defer c.wmu.Unlock()
	if c.detached.Load() {
		return ErrDetached
	}
	if err := c.c.SetWriteDeadline(time.Now().Add(sendWait)); err != nil {
		return fmt.Errorf("send %T: %w", v, err)
	}
	if _, err := c.c.Write(append(frame, '\n')); err != nil {
		c.c.CloseWrite() // the peer shall not wait for the rest
		return fmt.Errorf("send %T: %w", v, err)
	}
	return nil
}

// Receive waits for one message and reads it into v. It returns io.EOF when the
// peer is gone, io.ErrUnexpectedEOF when it went in the middle of a message, and
// ErrDetached after Detach. After any other error nothing that follows can be
// trusted.
func (c *Conn) Receive(v any) error {
	c.rmu.Lock()
	defer c.rmu.Unlock()
	frame, err := c.frame()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(frame, v); err != nil {
		return fmt.Errorf("receive %T: %w", v, err)
	}
	return nil
}

// Expire lets what the peer has said be received, but nothing that it says much
// later. It is for a peer that is known to be dead, when something else may still
// hold its end.
func (c *Conn) Expire() {
	c.c.SetReadDeadline(time.Now().Add(lastWords))
}

// Close ends the conversation.
func (c *Conn) Close() error { return c.c.Close() }

// detach ends the use of c in this process without ending the conversation. It
// returns the socket and what was read from it but not received.
func (c *Conn) detach() (*os.File, []byte, error) {
	c.detached.Store(true)
	// A Receive that waits leaves by this, and gives its lock back.
	if err := c.c.SetReadDeadline(time.Unix(1, 0)); err != nil {
		return nil, nil, err
	}
	c.rmu.Lock()
	defer c.rmu.Unlock()
	c.wmu.Lock()
	defer c.wmu.Unlock()
	f, err := c.c.File()
	if err != nil {
		return nil, nil, err
	}
	c.c.Close()
	return f, c.buf, nil
}

// frame returns the next line without its end. The caller holds rmu.
func (c *Conn) frame() ([]byte, error) {
	for seen := 0; ; {
		if i := bytes.IndexByte(c.buf[seen:], '\n'); i >= 0 {
			line := c.buf[:seen+i]
			c.buf = c.buf[seen+i+1:]
			return line, nil
		}
		seen = len(c.buf)
		if seen > c.max {
			return nil, fmt.Errorf("a message of more than %d bytes", c.max)
		}
		if err := c.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads once from the socket. The caller holds rmu.
func (c *Conn) fill() error {
	if len(c.buf) == 0 {
		c.buf = nil // a large message shall not keep its memory
	}
	c.buf = slices.Grow(c.buf, readSize)
	n, err := c.c.Read(c.buf[len(c.buf):cap(c.buf)])
	c.buf = c.buf[:len(c.buf)+n]
	// A peer that ends with something unread leaves a reset instead of an EOF.
	ended := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
	switch {
	case n > 0 || err == nil:
		return nil
	case c.detached.Load():
		return ErrDetached
	case ended && len(c.buf) > 0:
		return io.ErrUnexpectedEOF
	case ended:
		return io.EOF
	}
	return err
}
