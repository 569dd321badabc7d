package main

import (
	"net/http"
	"strings"
	"testing"

	"muster/testkit/apitest"
)

const acmeSunday = `{"task": "0wcy7y2fb2", "runbook": "firmware", "operator": "alice",
	"windows": [{"name": "acme-sunday", "for": "customer acme"}], "opens": "2026-11-29T01:00:00.000Z",
	"ends": "2026-11-29T03:00:00.000Z", "due": "2026-11-29T01:00:00.000Z", "count": 12, "hosts": "fw[001-012]"}`

const frozenBeta = `{"task": "0wcy7y2fb2", "runbook": "firmware", "operator": "alice", "windows": [],
	"opens": null, "ends": null, "due": "2026-11-24T01:00:00.000Z", "count": 1, "hosts": "vpn1",
	"why": "frozen by pe\u001bak, until that is lifted"}`

func TestTheQueueSaysWhenDeferredJobsAreDue(t *testing.T) {
	t.Parallel()
	zone := `{"zones": [{"zone": "default", "queued": 0, "again": 13, "due": 0, "oldest": null, "shares": [],
		"deferred": {"count": 1000, "more": true, "next": "2026-11-24T01:00:00.000Z", "appointments": [` +
		frozenBeta + `,` + acmeSunday + `]}}]}`
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/queue": apitest.Answer(zone)})
	code, out, _ := muster(t, a.URL, "queue")
	want := `default: 1000 jobs deferred at least, the first one due 2026-11-24 01:00:00Z
TASK        OPERATOR  JOBS  DUE                   OPENS                 ENDS                  WAIT FOR
0wcy7y2fb2  alice        1  2026-11-24 01:00:00Z  -                     -                     frozen by pe\x1bak, until that is lifted
0wcy7y2fb2  alice       12  2026-11-29 01:00:00Z  2026-11-29 01:00:00Z  2026-11-29 03:00:00Z  window acme-sunday (customer acme)
`
	if _, got, _ := strings.Cut(out, "\n\n"); code != 0 || got != want {
		t.Errorf("exit %d:\n%s\nwant\n%s", code, got, want)
	}
}

func TestATaskAndAJobSayForWhichWindowTheyWait(t *testing.T) {
	t.Parallel()
	task := `{"task": "0wcy7y2fb2", "runbook": "firmware", "operator": "alice", "state": "queued",
		"total": 13, "outcomes": {}, "zones": ["default"]}`
	a := apitest.New(t, map[string]http.HandlerFunc{
		"GET /v1/tasks/0wcy7y2fb2/summary": apitest.Answer(`{"task": ` + task + `, "groups": [], "awaits": [` +
			frozenBeta + `,` + acmeSunday + `]}`),
		"GET /v1/jobs/0wcy7y2fb2:fw001": apitest.Answer(`{"id": "0wcy7y2fb2:fw001", "host": "fw001",
			"state": "queued", "awaits": ` + acmeSunday + `}`)})
	_, out, _ := muster(t, a.URL, "task", "0wcy7y2fb2")
	apitest.WantParts(t, "task", out, "1 waiting: vpn1\n  frozen by pe\\x1bak, until that is lifted; looked at next "+
		"at 2026-11-24 01:00:00Z\n12 waiting: fw[001-012]\n  window acme-sunday (customer acme): opens at "+
		"2026-11-29 01:00:00Z, ends at 2026-11-29 03:00:00Z\n")
	_, out, _ = muster(t, a.URL, "job", "0wcy7y2fb2:fw001")
	apitest.WantParts(t, "job", out, "window acme-sunday (customer acme): opens at 2026-11-29 01:00:00Z, ends at "+
		"2026-11-29 03:00:00Z; 12 jobs of its task wait for it\n")
	_, out, _ = muster(t, a.URL, "task", "0wcy7y2fb2", "-o", "json")
	apitest.WantParts(t, "json", out, `"awaits": [`, `"name": "acme-sunday"`)
}
