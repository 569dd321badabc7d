package main

import (
	"net/http"
	"strings"
	"testing"

	"muster/testkit/apitest"
)

// A token whose record cannot be read is listed with the others, with what to do about it.
func TestABadTokenIsListedWithTheOthers(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{
		"GET /v1/tokens": apitest.Answer(`{"tokens": [{"name": "alice", "created": "2026-11-21T10:00:00.000Z"},
			{"name": "unreadable-0123456789ab", "created": null, "wrong": "its record is bad"}]}`)})
	code, out, words := muster(t, a.URL, "token", "ls")
	if code != 0 || !strings.Contains(out, "alice") || !strings.Contains(out, "unreadable-0123456789ab") ||
		!strings.Contains(words, "its record is bad, so it proves nobody; `muster token rm "+
			"unreadable-0123456789ab` removes it") {
		t.Errorf("exit %d, output %q, words %q", code, out, words)
	}
}
