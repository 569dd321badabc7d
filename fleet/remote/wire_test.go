package remote

import (
	"errors"
	"io"
	"net"
	"testing"
)

// The library asks for a channel by writing, and nobody would ever answer. A host that has
// ended its direction alone takes what is written to it.
func TestNothingIsWrittenToWhoSaysNothingAnyMore(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()

	w := newWire(near)
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := far.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Fatalf("read: %v, want the end", err)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, io.EOF) {
		t.Errorf("write: %v, want what ended the reading", err)
	}
}
