// Package porttest gives tests ports for servers that cannot choose one themselves.
//
// A port that the kernel has chosen and that was closed again is anybody's: the next
// connection of any process may get it, and so may the next test. And named, for one,
// listens on a port that it has already. So these ports are below those that the kernel
// gives away, and each belongs to one test of the machine until that ends.
package porttest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports: below net.ipv4.ip_local_port_range, which begins at 32768.
const (
	first = 10_000
	ports = 22_000
)

// On is a port of an address, such as 127.0.0.2, that is free for TCP and UDP. Until the
// test ends nobody else who asks here gets it, on any address.
//
// An abstract unix socket marks it: that leaves no file, is seen by all processes of the
// network namespace, and goes with its process, however that ends.
func On(t testing.TB, address string) int {
	t.Helper()
	for range 1000 {
		port := first + rand.IntN(ports)
		mark, err := net.Listen("unix", fmt.Sprint("@muster-test-port-", port))
		if err != nil {
			continue // it is another's
		}
		if !free(net.JoinHostPort(address, strconv.Itoa(port))) {
			_ = mark.Close()
			continue
		}
		t.Cleanup(func() { _ = mark.Close() })
		return port
	}
	t.Fatalf("no port of %s is free between %d and %d", address, first, first+ports)
	return 0
}

// Addr is a free port of 127.0.0.1 with that address.
func Addr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(On(t, "127.0.0.1")))
}

// free reports whether no process has a port.
func free(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", addr)
	if err != nil {
		return false
	}
	return u.Close() == nil
}
