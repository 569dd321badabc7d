package loopback_test

import (
	"testing"

	"muster/internal/loopback"
)

func TestHost(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.8.0.1": true, "::1": true,
		"::ffff:127.0.0.1": true, "": false, "127.0.0.1.example.org": false, "10.0.0.1": false, "::": false} {
		if got := loopback.Host(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}
