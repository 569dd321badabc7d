package dnstest

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// View is the judgement of a validating resolver about a name.
type View string

// The views of a resolver.
const (
	Secure   View = "secure"      // it has validated the answer
	Insecure View = "insecure"    // an answer, but nothing proves it
	Bogus    View = "bogus"       // SERVFAIL: what it got does not hold
	Silent   View = "unreachable" // it did not answer in time; nobody can tell
)

// Look asks a resolver for the address of a name, with the DO bit.
func Look(resolver *Server, name string) View {
	const answerIn = 10 * time.Second // it may have to ask two servers, each of them busy
	c, err := net.Dial("udp", fmt.Sprint(resolver.Address, ":", resolver.Port))
	if err != nil {
		return Silent
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(answerIn)); err != nil {
		return Silent
	}
	if _, err := c.Write(question(name)); err != nil {
		return Silent
	}
	reply := make([]byte, 4096)
	n, err := c.Read(reply)
	if err != nil || n < 12 {
		return Silent
	}
	flags := binary.BigEndian.Uint16(reply[2:])
	switch code := flags & 0xf; {
	case code == 2:
		return Bogus
	case code == 0 && flags&0x20 != 0: // AD
		return Secure
	}
	return Insecure
}

// question is a query for an A record as RFC 1035 §4 has it, with an OPT record
// (RFC 6891) that carries DO.
func question(name string) []byte {
	q := []byte{0x4d, 0x53, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, 1} // RD and AD
	for _, label := range strings.Split(name, ".") {
		q = append(append(q, byte(len(label))), label...)
	}
	q = append(q, 0, 0, 1, 0, 1)
	return append(q, 0, 0, 41, 0x10, 0, 0, 0, 0x80, 0, 0, 0)
}

// Watcher looks at Zone all the time.
type Watcher struct {
	mu     sync.Mutex
	seen   map[View]int // guarded by mu
	broken []string     // guarded by mu

	end  chan struct{}
	done sync.WaitGroup
}

// Watch begins to look, five times a second, until the test ends or End is called.
func (l *Lab) Watch(t testing.TB) *Watcher {
	w := &Watcher{seen: map[View]int{}, end: make(chan struct{})}
	w.done.Go(func() {
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			view := Look(l.Resolver, "www."+Zone)
			w.mu.Lock()
			w.seen[view]++
			if view != Secure {
				w.broken = append(w.broken, fmt.Sprint(time.Now().Format("15:04:05.0 "), view))
			}
			w.mu.Unlock()
			select {
			case <-w.end:
				return
			case <-tick.C:
			}
		}
	})
	t.Cleanup(func() { w.End() })
	return w
}

// End stops looking and gives how often each view was seen, and when it was not
// Secure.
func (w *Watcher) End() (seen map[View]int, broken []string) {
	w.mu.Lock()
	select {
	case <-w.end:
	default:
		close(w.end)
	}
	w.mu.Unlock()
	w.done.Wait()
	return w.seen, w.broken
}
