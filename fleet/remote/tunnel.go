package remote

import (
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// tunnel is a connection that a jump host has opened to a host.
type tunnel struct {
	ssh.Channel
	to     string
	gone   chan struct{} // closed when both sides have closed the channel
	closed func()        // called once

	mu       sync.Mutex
	deadline *time.Timer // guarded by mu
	expired  bool        // guarded by mu
	once     sync.Once
}

// Close starts to close the tunnel and does not wait for the jump host.
func (t *tunnel) Close() error {
	t.once.Do(t.closed)
	return nil
}

// Read reads what comes from the host.
func (t *tunnel) Read(p []byte) (int, error) {
	n, err := t.Channel.Read(p)
	return n, t.cause(err)
}

// Write sends to the host.
func (t *tunnel) Write(p []byte) (int, error) {
	n, err := t.Channel.Write(p)
	return n, t.cause(err)
}

func (t *tunnel) cause(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil && t.expired {
		return os.ErrDeadlineExceeded
	}
	return err
}

// SetDeadline closes the tunnel at that time, because a channel has no deadlines. A deadline
// that has passed cannot be removed.
func (t *tunnel) SetDeadline(at time.Time) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deadline != nil {
		t.deadline.Stop()
		t.deadline = nil
	}
	if t.expired {
		return os.ErrDeadlineExceeded
	}
	if !at.IsZero() {
		t.deadline = time.AfterFunc(time.Until(at), t.expire)
	}
	return nil
}

func (t *tunnel) expire() {
	t.mu.Lock()
	t.expired = true
	t.mu.Unlock()
	t.Close()
}

// SetReadDeadline is SetDeadline, because nobody needs a deadline for one direction.
func (t *tunnel) SetReadDeadline(at time.Time) error { return t.SetDeadline(at) }

// SetWriteDeadline is SetDeadline as well.
func (t *tunnel) SetWriteDeadline(at time.Time) error { return t.SetDeadline(at) }

// LocalAddr returns an empty address, because the jump host does not report its own.
func (t *tunnel) LocalAddr() net.Addr { return behind("") }

// RemoteAddr returns the address of the host as the jump host got it.
func (t *tunnel) RemoteAddr() net.Addr { return behind(t.to) }

// behind is an address behind a jump host.
type behind string

// Network returns the name of the channel type in SSH.
func (b behind) Network() string { return "direct-tcpip" }

// String returns the address as the jump host got it.
func (b behind) String() string { return string(b) }
