package fakefleet

import (
	"net"
	"slices"
	"sync"
	"time"
)

// Outage is a time in which a host was away because it was told to reboot.
type Outage struct {
	Host string
	Down time.Time
	Up   time.Time // may be ahead; zero: never
}

// Meets reports whether two hosts were away at the same time.
func (o Outage) Meets(other Outage) bool {
	return (o.Up.IsZero() || other.Down.Before(o.Up)) && (other.Up.IsZero() || o.Down.Before(other.Up))
}

// power cuts the connections of a host that reboots.
type power struct {
	mu      sync.Mutex
	outages []Outage
	lines   map[*net.TCPConn]bool
}

// plug notes a connection; it returns false while the host is away.
func (p *power) plug(c *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.outages); n > 0 {
		if up := p.outages[n-1].Up; up.IsZero() || time.Now().Before(up) {
			return false
		}
	}
	if p.lines == nil {
		p.lines = map[*net.TCPConn]bool{}
	}
	p.lines[c] = true
	return true
}

func (p *power) unplug(c *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.lines, c)
}

// goDown takes a host away for the time of its boot. Its clients receive nothing more.
func (h *host) goDown() {
	takes := h.fleet.config.BootTakes
	takes = takes/2 + takes*time.Duration(h.fleet.digest("boot", h.index)[0])/255
	h.power.mu.Lock()
	defer h.power.mu.Unlock()
	out := Outage{Host: h.name, Down: time.Now()}
	if h.personality != NoReturn {
		out.Up = out.Down.Add(takes)
	}
	h.power.outages = append(h.power.outages, out)
	for c := range h.power.lines {
		reset(c)
	}
}

// Outages returns the times when hosts were away because of a reboot, in order.
func (f *Fleet) Outages() []Outage {
	var all []Outage
	for _, h := range f.hosts {
		h.power.mu.Lock()
		all = append(all, h.power.outages...)
		h.power.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Outage) int { return a.Down.Compare(b.Down) })
	return all
}
