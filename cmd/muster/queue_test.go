package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
)

const sharedQueue = `{"zones": [{"zone": "default", "queued": 2976, "again": 32, "due": 2976,
	"oldest": "2026-11-21T10:00:00.000Z", "overdue": 12, "tasks": 11,
	"shares": [
		{"task": "0wcy7y2fb2", "operator": "alice", "priority": "normal", "due": "2026-11-21T10:00:00.000Z",
		 "waiting": 2972, "running": 28, "total": 3000},
		{"task": "0wcy7y2fb3", "operator": "b\u001bob", "priority": "high", "due": "2026-11-21T10:00:01.000Z",
		 "waiting": 4, "running": 0, "total": 4}],
	"reordered": {"at": "2026-11-21T10:00:08.000Z", "seconds": 0.25, "moved": 2990, "by": "n1/3",
		"end": "met", "next": "2026-11-21T10:00:18.000Z"}}]}`

func TestQueueTellsWhoseJobsWait(t *testing.T) {
	t.Parallel()
	a := newFakeAPI(t, map[string]http.HandlerFunc{"GET /v1/queue": answer(sharedQueue)})
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
		return map[string]http.HandlerFunc{"GET /v1/queue": inTurn(answer(sharedQueue),
			deny(404, `{"detail": "gone"}`))}
	}
	code, out, _ := muster(t, newFakeAPI(t, routes()).URL, "queue", "--watch")
	if code != exitNotAll || strings.Count(out, "\n") != 1 || strings.Contains(out, "\x1b") {
		t.Errorf("exit %d: %q, want one line", code, out)
	}
	wantParts(t, "line", out, "default: 2976 queued, 32 again, 2976 due, overdue 12s; waiting: "+
		"0wcy7y2fb2 (alice) 2972, 0wcy7y2fb3 (b\\x1bob) 4; reordered ")
	_, out, _ = muster(t, newFakeAPI(t, routes()).URL, "queue", "--watch", "-o", "json")
	var zones []api.Zone
	if err := json.Unmarshal([]byte(out), &zones); err != nil || strings.Count(out, "\n") != 1 ||
		len(zones) != 1 || zones[0].Shares[1].Waiting != 4 {
		t.Errorf("%v: %q", err, out)
	}
}

func TestAPictureFitsTheTerminal(t *testing.T) {
	t.Parallel()
	var q api.QueueInfo
	if err := json.Unmarshal([]byte(sharedQueue), &q); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 21, 10, 0, 12, 0, time.UTC)
	for _, width := range []int{20, 40, 60, 80, 200} {
		s := &session{screen: &screen{outTerm: true, width: func() int { return width },
			now: func() time.Time { return now }}}
		lines := strings.Split(strings.TrimSpace(s.picture(q.Zones[0])), "\n")
		for _, line := range lines {
			if len([]rune(line)) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
		if width < 60 {
			continue
		}
		big, small := strings.Count(lines[1], "#"), strings.Count(lines[2], "#")
		if len(lines) != 4 || big < 10 || small != 1 || !strings.HasSuffix(lines[1], " 2972, 28 running") {
			t.Errorf("%d columns:\n%s", width, strings.Join(lines, "\n"))
		}
		if width > 100 && !strings.Contains(lines[3], "reordered 4.0s ago") {
			t.Errorf("%q", lines[3])
		}
	}
}

func TestAZoneThatWasNeverReorderedSaysNothing(t *testing.T) {
	t.Parallel()
	if words := reorderedWords(jobs.Reordered{}, time.Now()); words != "" {
		t.Errorf("%q", words)
	}
	if words := reorderedWords(jobs.Reordered{Now: true}, time.Now()); words != "being reordered now" {
		t.Errorf("%q", words)
	}
}
