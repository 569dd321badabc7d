package redistest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy stands between a client and a server. It can lose or hold back answers of the server, and
// cut all connections.
type Proxy struct {
	Addr string

	mu      sync.Mutex
	swallow int           // answers still to lose
	stalled chan struct{} // closed when answers may pass; nil: they may
	cut     bool
	conns   map[net.Conn]bool
	lost    chan struct{} // receives each answer that was lost or held back
}

// StartProxy forwards connections to addr until the test ends.
func StartProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), conns: map[net.Conn]bool{}, lost: make(chan struct{}, 100)}
	var wait sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		p.Cut()
		p.Resume()
		wait.Wait()
	})
	wait.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", addr)
			if err != nil || !p.keep(down, up) {
				down.Close()
				continue
			}
			wait.Go(func() { io.Copy(up, down); up.Close() })
			wait.Go(func() { p.answers(down, up); down.Close() })
		}
	})
	return p
}

// keep notes the two ends of a connection; it returns false while connections are cut.
func (p *Proxy) keep(down, up net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		up.Close()
		return false
	}
	p.conns[down], p.conns[up] = true, true
	return true
}

// Swallow loses the next n answers, and the connection with each: the server has
// carried the call out, and its client never hears of it.
func (p *Proxy) Swallow(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = n
}

// Lost returns a channel that receives every answer that was lost or is held back.
func (p *Proxy) Lost() <-chan struct{} { return p.lost }

// Stall holds all answers back until Resume.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
}

// Resume lets answers pass, and new connections be made.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
	p.cut = false
}

// Cut breaks all connections, and refuses new ones until Resume.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

func (p *Proxy) answers(down io.Writer, up io.Reader) {
	buf := make([]byte, 64<<10)
	for {
		n, err := up.Read(buf)
		if n > 0 {
			if p.lose() {
				return
			}
			if _, err := down.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// lose reports whether an answer gets lost. If answers are held back, it waits until they are
// released.
func (p *Proxy) lose() bool {
	p.mu.Lock()
	stalled := p.stalled
	if stalled != nil {
		p.mu.Unlock()
		p.tell()
		<-stalled
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	if p.swallow == 0 {
		return false
	}
	p.swallow--
	p.tell()
	return true
}

func (p *Proxy) tell() {
	select {
	case p.lost <- struct{}{}:
	default:
	}
}
