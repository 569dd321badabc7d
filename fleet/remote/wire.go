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

// wire is a network connection that remembers when it was last heard, what it
// heard first, and why nothing more will be heard.
type wire struct {
	net.Conn

	mu       sync.Mutex
	last     time.Time // guarded by mu
	greeting []byte    // guarded by mu
	over     error     // of the read that failed, guarded by mu
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

// Write writes to the connection, unless nothing more will be heard of it. The library lets
// go of its channels when a read has failed, and a moment later refuses to write. Who asked
// for a channel in between was never answered: a goroutine that nobody could end.
func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	over := w.over
	w.mu.Unlock()
	if over != nil {
		return 0, over
	}
	return w.Conn.Write(p)
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
