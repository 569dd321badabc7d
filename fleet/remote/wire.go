package remote

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// greetingMax bounds what is kept of a peer's first words, for the error text
// when it turns out not to speak SSH.
const greetingMax = 512

// wire is a network connection that remembers when it was last heard, and what
// it heard first.
type wire struct {
	net.Conn

	mu       sync.Mutex
	last     time.Time // guarded by mu
	greeting []byte    // guarded by mu
}

func newWire(nc net.Conn) *wire {
	return &wire{Conn: nc, last: time.Now()}
}

// Read reads from the connection.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.last = time.Now()
		if room := greetingMax - len(w.greeting); room > 0 {
			w.greeting = append(w.greeting, p[:min(n, room)]...)
		}
	}
	return n, err
}

// silence is the time since the last byte came in.
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
