package main

import (
	"net/http"
	"testing"

	"muster/cli"
	"muster/testkit/apitest"
)

// An empty selector never means all hosts, and no view shows an end that was not seen.
func TestWhatIsNotAskedAndNotSeenIsNotDrawn(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{
		"GET /v1/windows":             apitest.Answer(`{"windows": [], "freezes": []}`),
		"GET /v1/hosts":               apitest.Answer(`{"hosts": []}`),
		"GET /v1/hosts/fw001/windows": apitest.Answer(`{"windows": [], "hidden": [], "freezes": [], "now": {"open": true}}`),
	})
	code, out, words := muster(t, a.URL, "windows", "calendar", " ", "--from", "x")
	if code != cli.ExitUsage {
		t.Errorf("an empty selector: exit %d, %s", code, out)
	}
	apitest.WantParts(t, "the refusal", words, "the selector is empty", "--from")
	_, out, _ = muster(t, a.URL, "windows", "explain", "fw001")
	apitest.WantParts(t, "explain", out, "open now, and not shut in the next 400 days")
}
