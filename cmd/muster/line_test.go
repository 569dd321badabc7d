package main

import (
	"io"
	"net"
	"sync"
	"testing"
)

// newLine makes a line to an address, over a port of its own. up carries the bytes to it and down
// the bytes back; each closes the side to which it writes. A nil one only copies.
func newLine(t *testing.T, addr string, up, down func(from, to net.Conn)) (port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if up == nil {
		up = carry
	}
	if down == nil {
		down = carry
	}
	_, port, _ = net.SplitHostPort(l.Addr().String())
	var conns sync.WaitGroup
	t.Cleanup(func() { l.Close(); conns.Wait() })
	conns.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", addr)
			if err != nil {
				near.Close()
				continue
			}
			conns.Go(func() { up(near, far) })
			conns.Go(func() { down(far, near) })
		}
	})
	return port
}

func carry(from, to net.Conn) {
	io.Copy(to, from)
	to.Close()
}
