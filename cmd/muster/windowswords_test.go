package main

import (
	"net/http"
	"testing"
)

// What is read as an older muster did is said wherever the window or the freeze is shown.
func TestWhatIsOutdatedIsSaid(t *testing.T) {
	t.Parallel()
	const window = `{"name": "cal", "for": "customer acme", "outdated": ["a.ics: line 6: EXRULE is not read\u001b"]}`
	const freeze = `{"name": "xmas", "outdated": ["b.ics: line 9: RDATE"]}`
	a := newFakeAPI(t, map[string]http.HandlerFunc{
		"GET /v1/windows":             answer(`{"windows": [` + window + `], "freezes": [` + freeze + `]}`),
		"GET /v1/hosts/fw001/windows": answer(`{"windows": [], "hidden": [` + window + `], "freezes": [` + freeze + `]}`),
	})
	for _, args := range [][]string{{"ls"}, {"show", "cal"}, {"explain", "fw001"}} {
		code, out, words := muster(t, a.URL, append([]string{"windows"}, args...)...)
		if code != 0 {
			t.Errorf("%v: exit %d, %s", args, code, words)
		}
		wantParts(t, args[0], out, "! window cal is read as an older muster did", "applied anew",
			`a.ics: line 6: EXRULE is not read\x1b`)
		if args[0] != "show" {
			wantParts(t, args[0], out, "! freeze xmas is read", "b.ics: line 9: RDATE")
		}
	}
}

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
