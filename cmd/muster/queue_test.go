package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/cli"
	"muster/testkit/apitest"
)

func TestQueueTellsWhoseJobsWait(t *testing.T) {
	t.Parallel()
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/queue": apitest.Answer(apitest.SharedQueue)})
	code, out, _ := muster(t, a.URL, "queue")
	_, got, _ := strings.Cut(out, "\n\n")
	want := "default: 11 tasks open, by jobs that wait (2 shown)\n" +
		"TASK        OPERATOR  PRIORITY  WAITING  RUNNING  TOTAL  DUE\n" +
		"0wcy7y2fb2  alice     normal       2972       28   3000  2026-11-21 10:00:00Z\n" +
		"0wcy7y2fb3  b\\x1bob   high            4        0      4  2026-11-21 10:00:01Z\n\n" +
		"default: reordered "
	if code != 0 || !strings.HasPrefix(got, want) ||
		!strings.HasSuffix(got, "2990 jobs in 0.2s by n1/3 (met); not again before 2026-11-21 10:00:18Z\n") {
		t.Errorf("exit %d:\n%s\nwant\n%s", code, got, want)
	}
}

func TestAWatchedQueueIsLinesInAPipe(t *testing.T) {
	t.Parallel()
	routes := func() map[string]http.HandlerFunc {
		return map[string]http.HandlerFunc{"GET /v1/queue": apitest.InTurn(apitest.Answer(apitest.SharedQueue),
			apitest.Deny(404, `{"detail": "gone"}`))}
	}
	code, out, _ := muster(t, apitest.New(t, routes()).URL, "queue", "--watch")
	if code != cli.ExitNotAll || strings.Count(out, "\n") != 1 || strings.Contains(out, "\x1b") {
		t.Errorf("exit %d: %q, want one line", code, out)
	}
	apitest.WantParts(t, "line", out, "default: 2976 queued, 32 again, 2976 due, overdue 12s; waiting: "+
		"0wcy7y2fb2 (alice) 2972, 0wcy7y2fb3 (b\\x1bob) 4; reordered ")
	_, out, _ = muster(t, apitest.New(t, routes()).URL, "queue", "--watch", "-o", "json")
	var zones []api.Zone
	if err := json.Unmarshal([]byte(out), &zones); err != nil || strings.Count(out, "\n") != 1 ||
		len(zones) != 1 || zones[0].Shares[1].Waiting != 4 {
		t.Errorf("%v: %q", err, out)
	}
}
