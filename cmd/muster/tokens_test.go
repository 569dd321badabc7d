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
		"GET /v1/tokens": apitest.Answer(`{"tokens": [{"id": "4x7hqk3a754z", "name": "laptop", "owner": "user:alice",
				"created": "2026-11-21T10:00:00.000Z"},
			{"id": "bad-0123456789ab", "created": null, "wrong": "its record is bad"}]}`)})
	code, out, words := muster(t, a.URL, "token", "ls")
	if code != 0 || !strings.Contains(out, "user:alice") || !strings.Contains(out, "bad-0123456789ab") ||
		!strings.Contains(words, "its record is bad, so it proves nobody; `muster token rm "+
			"bad-0123456789ab` removes it") {
		t.Errorf("exit %d, output %q, words %q", code, out, words)
	}
}
