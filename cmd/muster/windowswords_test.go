package main

import (
	"net/http"
	"testing"
)

// No selector is ever all hosts by being empty, and nobody is told of an end that was not seen.
func TestWhatIsNotAskedAndNotSeenIsNotDrawn(t *testing.T) {
	t.Parallel()
	a := newFakeAPI(t, map[string]http.HandlerFunc{
		"GET /v1/windows":             answer(`{"windows": [], "freezes": []}`),
		"GET /v1/hosts":               answer(`{"hosts": []}`),
		"GET /v1/hosts/fw001/windows": answer(`{"windows": [], "hidden": [], "freezes": [], "now": {"open": true}}`),
	})
	code, out, words := muster(t, a.URL, "windows", "calendar", " ", "--from", "x")
	if code != exitUsage {
		t.Errorf("an empty selector: exit %d, %s", code, out)
	}
	wantParts(t, "the refusal", words, "the selector is empty", "--from")
	_, out, _ = muster(t, a.URL, "windows", "explain", "fw001")
	wantParts(t, "explain", out, "open now, and not shut in the next 400 days")
}
