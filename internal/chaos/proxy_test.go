package chaos

import (
	"net"
	"sync"
	"time"
)

// A proxy stands between a node or a server and Redis, and can be a bad network.
type proxy struct {
	listener net.Listener
	to       string

	mu      sync.Mutex
	conns   map[net.Conn]bool
	held    chan struct{} // nothing passes until it is closed; nil: it does
	swallow int           // answers still to lose
	refuse  bool          // who comes is sent away
}

// newProxy listens on an address of this machine.
func newProxy(on, to string) (*proxy, error) {
	l, err := net.Listen("tcp4", net.JoinHostPort(on, "0"))
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, to: to, conns: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		down, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(down)
	}
}

func (p *proxy) serve(down net.Conn) {
	defer down.Close()
	p.mu.Lock()
	refuse := p.refuse
	p.mu.Unlock()
	if refuse {
		return
	}
	up, err := net.Dial("tcp4", p.to)
	if err != nil {
		return
	}
	defer up.Close()
	p.note(true, up, down)
	defer p.note(false, up, down)
	go func() {
		p.pass(up, down, false)
		up.Close()
	}()
	p.pass(down, up, true)
}

func (p *proxy) note(open bool, conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		if open {
			p.conns[c] = true
		} else {
			delete(p.conns, c)
		}
	}
}

// pass carries bytes one way, until the end of either side, or an answer is lost.
func (p *proxy) pass(to, from net.Conn, answers bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		held := p.held
		p.mu.Unlock()
		if held != nil {
			<-held
		}
		if n > 0 {
			if answers && p.lose() {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) lose() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.swallow == 0 {
		return false
	}
	p.swallow--
	return true
}

// stall holds up everything for a while, both ways; nothing is lost.
func (p *proxy) stall(d time.Duration) {
	p.mu.Lock()
	if p.held != nil {
		p.mu.Unlock()
		return
	}
	held := make(chan struct{})
	p.held = held
	p.mu.Unlock()
	<-time.After(d)
	p.mu.Lock()
	p.held = nil
	p.mu.Unlock()
	close(held)
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// swallowed loses the next answers, each with its connection: Redis has done what
// nobody hears of.
func (p *proxy) swallowed(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = n
}

// shut sends away who is there and who comes, until it is opened again.
func (p *proxy) shut(shut bool) {
	p.mu.Lock()
	p.refuse = shut
	p.mu.Unlock()
	if shut {
		p.cut()
	}
}

func (p *proxy) end() {
	p.listener.Close()
	p.cut()
}
