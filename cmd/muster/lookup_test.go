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

// freeSocket is a place for a server, as the URL that its clients use.
func freeSocket(t testing.TB) string {
	t.Helper()
	return "unix://" + filepath.Join(apitest.ShortDir(t), "s")
}

// listenOn is what server.listen says of a URL.
func listenOn(url string) string {
	return strings.Replace(strings.TrimPrefix(url, "http://"), "unix://", "unix:", 1)
}

// get asks the server of the house for something, without a client of ours.
func (h *house) get(path string) (*http.Response, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(h.url, "unix://"))
	}
	c := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
	return c.Get("http://muster" + path)
}
