package server_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"muster/server"
)

func FuzzPlaceOfAStream(f *testing.F) {
	for _, s := range []string{"", "default=0", "default=1763720000000-0,eu=1763720000001-12", "a=1,a=2",
		"default=", "=1", "a=1-2-3", "a b=1", "a=1,", "a=99999999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, err := server.RoundTrip(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(once, "\r\n") {
			t.Errorf("%q becomes %q, which would end a line of the stream", text, once)
		}
		twice, err := server.RoundTrip(once)
		if err != nil || twice != once {
			t.Errorf("%q becomes %q and then %q, %v", text, once, twice, err)
		}
	})
}

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
