package main

import (
	"net/http"
	"strings"
	"testing"

	"muster/cli"
	"muster/testkit/apitest"
)

// With --nothing no part comes back: the rehearsal says so in its table and in its JSON.
func TestARehearsalSaysWhatRestoreWouldDo(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/agreed": apitest.Answer(`{
		"lost": {"since": "2026-11-24T02:00:00Z", "note": "1 freeze"}, "parts": [
		{"part": "windows", "kept": "1 freezes", "at": "2026-11-23T02:00:00Z", "now": "", "comes_back": true},
		{"part": "halt", "kept": "", "at": null, "now": "halted", "comes_back": false}]}`)})
	for _, c := range []struct{ args, has, lacks string }{
		{"--dry-run", "would come back", "given up"},
		{"--nothing --dry-run", "would be given up for good", "come back"},
		{"--dry-run -o json", `"comes_back": true`, "given up"},
		{"--nothing --dry-run -o json", `"comes_back": false`, `"comes_back": true`},
	} {
		code, out, words := muster(t, a.URL, append([]string{"restore"}, strings.Fields(c.args)...)...)
		if code != cli.ExitOK || !strings.Contains(out, c.has) || strings.Contains(out, c.lacks) {
			t.Errorf("restore %s: exit %d, %s%s, want %q and no %q", c.args, code, out, words, c.has, c.lacks)
		}
		if rows := strings.Count(out, c.has); c.has[0] == 'w' && rows != 1 {
			t.Errorf("restore %s: %d parts of 1:\n%s", c.args, rows, out)
		}
	}
}
