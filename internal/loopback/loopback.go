// Package loopback knows the addresses of this machine itself. Pure.
//
// Floor -1: may import no room.
package loopback

import "net/netip"

// Host reports whether a host is this machine: localhost, or an address of the loopback. It asks no
// name server.
func Host(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
