package arrivals

import (
	"net/netip"
	"sync"
)

// guests counts the messages that arrive, by the address from which they do.
type guests struct {
	mu sync.Mutex
	by map[string]int
}

// enter counts one more message from an address, unless too many arrive from there.
func (g *guests) enter(from string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if from != "" && g.by[from] >= ofOne {
		return false
	}
	g.by[from]++
	return true
}

func (g *guests) leave(from string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.by[from]--; g.by[from] <= 0 {
		delete(g.by, from)
	}
}

// addressOf returns the address by which a sender is counted: a network of 64 bits is one place.
// Empty: it comes over a unix socket, whose users are counted by nobody.
func addressOf(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	a := at.Addr().Unmap()
	if a.Is6() {
		p, err := a.WithZone("").Prefix(64)
		if err == nil {
			return p.String()
		}
	}
	return a.String()
}
