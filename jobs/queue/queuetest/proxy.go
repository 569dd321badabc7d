package queuetest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy stands between a client and a server and can lose what the server says.
type Proxy struct {
	Addr string

	mu      sync.Mutex
	swallow int           // answers still to lose
	lost    chan struct{} // tells of each answer that was lost
}

// StartProxy forwards connections to addr until the test ends.
func StartProxy(t testing.TB, addr string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), lost: make(chan struct{}, 100)}
	var wait sync.WaitGroup
	var conns sync.Map
	t.Cleanup(func() {
		l.Close()
		conns.Range(func(c, _ any) bool { c.(net.Conn).Close(); return true })
		wait.Wait()
	})
	wait.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", addr)
			if err != nil {
				down.Close()
				continue
			}
			conns.Store(down, nil)
			conns.Store(up, nil)
			wait.Go(func() { io.Copy(up, down); up.Close() })
			wait.Go(func() { p.answers(down, up); down.Close() })
		}
	})
	return p
}

// Swallow loses the next n answers, and the connection with each: the server has
// carried the call out, and its client never hears of it.
func (p *Proxy) Swallow(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.swallow = n
}

// Lost is told of every answer that was lost.
func (p *Proxy) Lost() <-chan struct{} { return p.lost }

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

func (p *Proxy) lose() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.swallow == 0 {
		return false
	}
	p.swallow--
	p.lost <- struct{}{}
	return true
}
