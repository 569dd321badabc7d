package remote

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// greetingMax bounds how much of a peer's first words is kept, for the error text if it does
// not speak SSH.
const greetingMax = 512

// wire is a network connection that remembers when it last received something, the first
// bytes it received, and why no more will come.
type wire struct {
	net.Conn

	mu       sync.Mutex
	last     time.Time // guarded by mu
	greeting []byte    // guarded by mu
	over     error     // error of the failed read, guarded by mu
}

func newWire(nc net.Conn) *wire {
	return &wire{Conn: nc, last: time.Now()}
}

// Read reads from the connection.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil && w.over == nil {
		w.over = err
	}
	if n > 0 {
		w.last = time.Now()
		if room := greetingMax - len(w.greeting); room > 0 {
			w.greeting = append(w.greeting, p[:min(n, room)]...)
		}
	}
	return n, err
}

// Write writes to the connection, unless reading from it has failed. The library drops its
// channels after a failed read and refuses to write only a moment later. A request for a
// channel in between would never be answered, and its goroutine could not be ended.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	over := w.over
	w.mu.Unlock()
	if over != nil {
		return 0, over
	}
	return w.Conn.Write(p)
}

// silence returns the time since the last byte arrived.
func (w *wire) silence() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Since(w.last)
}

// heard returns the peer's first words.
func (w *wire) heard() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return bytes.Clone(w.greeting)
}
