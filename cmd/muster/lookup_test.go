package main

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"muster/testkit/apitest"
)

// freeSocket returns a socket for a server, as the URL for its clients.
func freeSocket(t testing.TB) string {
	t.Helper()
	return "unix://" + filepath.Join(apitest.ShortDir(t), "s")
}

// listenOn returns server.listen for a URL.
func listenOn(url string) string {
	return strings.Replace(strings.TrimPrefix(url, "http://"), "unix://", "unix:", 1)
}

// get reads a path from the server of the house, without our client.
func (h *house) get(path string) (*http.Response, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(h.url, "unix://"))
	}
	c := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return c.Get("http://localhost" + path)
}
