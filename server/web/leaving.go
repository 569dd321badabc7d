package web

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Leaving tells the callers of a server to make a new connection once the channel is closed.
func Leaving(stopping <-chan struct{}, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-stopping:
			w.Header().Set("Connection", "close")
		default:
		}
		h.ServeHTTP(w, r)
	})
}

// Uses keeps when each connection of a server was last used.
type Uses struct {
	mu   sync.Mutex
	last map[net.Conn]time.Time
}

// NewUses returns the uses of a server without connections.
func NewUses() *Uses { return &Uses{last: map[net.Conn]time.Time{}} }

// Note hears of a change of a connection: it is http.Server.ConnState.
func (u *Uses) Note(c net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(u.last, c)
	case http.StateNew, http.StateActive: // a request begins; the end of a long one is no new use
		u.last[c] = time.Now()
	}
}

// Since reports whether an open connection was used at or after an instant.
func (u *Uses) Since(at time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, t := range u.last {
		if !t.Before(at) {
			return true
		}
	}
	return false
}
