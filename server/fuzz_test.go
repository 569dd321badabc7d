package server_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"muster/server"
)

func FuzzListen(f *testing.F) {
	for _, s := range []string{"127.0.0.1:7070", "localhost:0", ":7070", "[::]:1", "[::1%lo]:1", "unix:/a",
		"unix:", "0:1", "127.1:80", "[::ffff:127.0.0.1]:1", "localhost.:1", "a:b:c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, listen string) {
		if server.DefaultConfig().Validate() != nil {
			t.Fatal("the default is refused")
		}
		if (server.Config{Listen: listen}).Validate() != nil || strings.HasPrefix(listen, "unix:/") {
			return
		}
		// Without TLS only what cannot be reached from elsewhere is good.
		host, _, err := net.SplitHostPort(listen)
		if err != nil {
			t.Fatalf("%q is accepted: %v", listen, err)
		}
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.Unmap().IsLoopback()) {
			t.Errorf("%q is accepted without TLS", listen)
		}
	})
}
