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

// client returns a client of the server of the house that is not our own.
func (h *house) client() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(h.url, "unix://"))
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
}

// get reads a path from the server of the house, without our client.
func (h *house) get(path string) (*http.Response, error) {
	return h.client().Get("http://localhost" + path)
}
