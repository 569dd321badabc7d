package main

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"muster/cli"
	"muster/testkit/apitest"
)

const pastJobs = `{"jobs": [
	{"id": "0wcy7y2fb2:fw001", "host": "fw001", "state": "ended", "outcome": "succeeded", "customer": "acme",
	 "runbook": "exec", "operator": "alice", "started": "2026-11-21T10:00:00.000Z", "finished": "2026-11-21T10:00:09.000Z"},
	{"id": "0wcy7y2fb2:fw002", "host": "fw002", "state": "ended", "outcome": "failed", "exit_code": 3,
	 "error": "=cmd|'/C calc'!A0 \u001b[31m <script>", "finished": "2026-11-21T10:00:09.000Z"}], "next": "17:0wcy7y2fb2:fw002"}`

const pastReport = `{"task": {"task": "0wcy7y2fb2", "runbook": "exec", "on": "all", "operator": "alice", "state": "ended",
	"submitted": "2026-11-21T10:00:00.000Z"}, "total": 5, "notes": [], "parts": [
	{"name": "succeeded", "hosts": 1, "means": "said so"}, {"name": "failed", "hosts": 1, "means": "no"},
	{"name": "not known", "hosts": 3, "means": "not in history"}], `

func historyAPI(t *testing.T) *apitest.API {
	jobs := strings.TrimSuffix(strings.TrimPrefix(pastJobs, "{"), `, "next": "17:0wcy7y2fb2:fw002"}`)
	return apitest.New(t, map[string]http.HandlerFunc{
		"GET /v1/history":                 apitest.Answer(pastJobs),
		"GET /v1/tasks/0wcy7y2fb2/report": apitest.Answer(pastReport + jobs + "}"),
		"GET /v1/history/export": apitest.Answer(
			`{"id": "0wcy7y2fb2:fw001", "error": "\u001b"}` + "\n" + `{"end":true}` + "\n"),
		"GET /v1/history/state": apitest.Answer(`{"where": "sqlite /x", "streams": [{"zone": "default", "last": "9-0", "events": 7}],
			"gaps": [{"zone": "default", "entries": 12, "after": "1-0", "first": "9-0", "note": "trimmed"}, {"zone": "eu", "entries": -1}]}`),
	})
}

func TestHistoryAsksWithItsFilters(t *testing.T) {
	t.Parallel()
	a := historyAPI(t)
	code, out, words := muster(t, a.URL, "history", "--customer", "acme", "--outcome", "failed", "--from",
		"2026-11-01T00:00:00Z", "--limit", "2", "--cursor", "9:0wcy7y2fb2:x")
	if code != 0 || !strings.Contains(words, "--cursor 17:0wcy7y2fb2:fw002") || strings.Contains(out, "\x1b") {
		t.Errorf("exit %d, %q, %q", code, out, words)
	}
	apitest.WantParts(t, "the table", out, "fw001", "acme", "alice", "succeeded", "9.0s", "fw002", "failed")
	want := "GET /v1/history?cursor=9%3A0wcy7y2fb2%3Ax&customer=acme&from=2026-11-01T00%3A00%3A00Z&limit=2&outcome=failed"
	if got := a.Requests(); len(got) == 0 || got[0] != want {
		t.Errorf("asked %v, want %s", got, want)
	}
	var page map[string]any
	if code, out, _ := muster(t, a.URL, "history", "-o", "json"); code != 0 || json.Unmarshal([]byte(out), &page) != nil ||
		page["next"] == "" {
		t.Errorf("as JSON: exit %d, %s", code, out)
	}
	code, _, words = muster(t, a.URL, "history", "--outcome", "fine", "--from", "soon", "--limit", "0", "--task", "x")
	if code != cli.ExitUsage {
		t.Errorf("mistakes: exit %d", code)
	}
	apitest.WantParts(t, "the mistakes", words, "--outcome", "--from", "--limit", "--task")
}

func TestExportTellsWhetherAllCame(t *testing.T) {
	t.Parallel()
	code, out, words := muster(t, historyAPI(t).URL, "history", "export")
	if code != 0 || strings.Count(out, "\n") != 1 {
		t.Errorf("exit %d, %q, %q", code, out, words)
	}
	a := apitest.New(t, map[string]http.HandlerFunc{"GET /v1/history/export": apitest.Answer(`{"id": "x"}` + "\n")})
	code, _, words = muster(t, a.URL, "history", "export")
	if code == 0 || !strings.Contains(words, "not all jobs came") {
		t.Errorf("one that broke off: exit %d, %q", code, words)
	}
}

func TestGapsAreShown(t *testing.T) {
	t.Parallel()
	code, out, _ := muster(t, historyAPI(t).URL, "history", "gaps")
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	apitest.WantParts(t, "the tables", out, "default", "9-0", "12", "trimmed", "?")
}

func TestReportsAddUpInEveryForm(t *testing.T) {
	t.Parallel()
	a := historyAPI(t)
	code, out, words := muster(t, a.URL, "report", apitest.ATask)
	if code != 0 || strings.Contains(out, "\x1b") {
		t.Errorf("text: exit %d, %q, %s", code, out, words)
	}
	apitest.WantParts(t, "text", out, "1  succeeded", "1  failed", "3  not known", "5  hosts", "fw002")
	_, out, _ = muster(t, a.URL, "report", apitest.ATask, "--form", "csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) != 4 || rows[3][3] != "not known" || rows[3][7] != "3 hosts" || rows[2][6][:2] != "'=" {
		t.Errorf("csv: %v, %q", err, rows)
	}
	_, out, _ = muster(t, a.URL, "report", apitest.ATask, "--form", "html")
	if strings.Contains(out, "<script>") || strings.Contains(out, "\x1b") || !strings.Contains(out, "&lt;script&gt;") {
		t.Errorf("html: %s", out)
	}
	for _, args := range [][]string{{"--form", "json"}, {"-o", "json"}} {
		var r map[string]any
		_, out, _ = muster(t, a.URL, append([]string{"report", apitest.ATask}, args...)...)
		if json.Unmarshal([]byte(out), &r) != nil || r["total"] != 5.0 {
			t.Errorf("%v: %s", args, out)
		}
	}
	code, _, words = muster(t, a.URL, "report", apitest.ATask, "--form", "pdf")
	if code != cli.ExitUsage || !strings.Contains(words, "want text") {
		t.Errorf("another form: exit %d, %s", code, words)
	}
}

func TestAJobOfHistoryShowsWhatItRanAndItsAttempts(t *testing.T) {
	t.Parallel()
	const asked = `"on": "role=fw", "proven": false, "reason": "change 7", "ran": {"version": "1", "sha256": "abcd",
		"work": "ef", "arguments": [{"name": "cmd", "value": "echo \u001b[2J"}, {"name": "password", "secret": true}]}`
	a := apitest.New(t, map[string]http.HandlerFunc{
		"GET /v1/jobs/" + apitest.AJob: apitest.Answer(`{"id": "` + apitest.AJob + `", "host": "fw001", "state": "ended", "outcome": "succeeded",
			"of": {"task": "0wcy7y2fb2", "runbook": "exec", "operator": "alice", ` + asked + `}}`),
		"GET /v1/jobs/" + apitest.AJob + "/course": apitest.Answer(`{"attempts": [{"attempt": 1, "node": "n1/1", "how": "retry",
			"started": "2026-11-21T10:00:00.000Z", "ended": "2026-11-21T10:00:01.000Z"}, {"attempt": 2, "node": "n2/1",
			"how": "succeeded"}], "steps": [{"step": 1, "at": "2026-11-21T10:00:05.000Z"}]}`),
		"GET /v1/history": apitest.Answer(`{"jobs": [{"id": "` + apitest.AJob + `", "host": "fw001", "state": "ended",
			"outcome": "succeeded", "runbook": "exec", "operator": "alice", "asked": {` + asked + `}}]}`),
		"GET /v1/history/events": apitest.Answer(`{"events": [{"id": "1-0", "zone": "default", "at": "2026-11-21T10:00:00.000Z",
			"event": "submit", "object": "0wcy7y2fb2", "detail": {"arguments": "cmd=true\u001b"}}], "next": "1"}`),
	})
	code, out, _ := muster(t, a.URL, "job", apitest.AJob)
	if code != 0 || strings.Contains(out, "\x1b") {
		t.Errorf("exit %d, %q", code, out)
	}
	apitest.WantParts(t, "the job", out, "alice (unproven)", "change 7", "exec, version 1, sha256 abcd", "cmd='echo",
		"password=(secret)", "ATTEMPT", "n2/1", "retry", "STEP", "10:00:05")
	var d map[string]any
	if code, out, _ := muster(t, a.URL, "job", apitest.AJob, "-o", "json"); code != 0 || json.Unmarshal([]byte(out),
		&d) != nil ||
		d["of"] == nil || len(d["attempts"].([]any)) != 2 || len(d["steps"].([]any)) != 1 {
		t.Errorf("as JSON: exit %d, %s", code, out)
	}
	_, out, _ = muster(t, a.URL, "history")
	apitest.WantParts(t, "the list", out, "ARGUMENTS", "password=(secret)")
	code, out, words := muster(t, a.URL, "history", "events", apitest.AJob)
	if code != 0 || strings.Contains(out, "\x1b") || !strings.Contains(words, "--cursor 1") {
		t.Errorf("exit %d, %q, %q", code, out, words)
	}
	apitest.WantParts(t, "the events", out, "2026-11-21 10:00:00", "submit", "cmd=true")
	if code, out, _ := muster(t, a.URL, "history", "events", apitest.AJob, "-o", "json"); code != 0 ||
		!strings.Contains(out, `"next": "1"`) {
		t.Errorf("as JSON: exit %d, %s", code, out)
	}
	code, _, words = muster(t, a.URL, "history", "events", "--limit", "0", "--until", "noon")
	if code != cli.ExitUsage {
		t.Errorf("many mistakes: exit %d", code)
	}
	apitest.WantParts(t, "the mistakes", words, "--limit 0", "--since 24h", "--until", "how long ago")
	code, out, words = muster(t, a.URL, "job", apitest.AJob, "--attempts")
	if code != 0 || words != "" {
		t.Errorf("attempts: exit %d, %s", code, words)
	}
	apitest.WantParts(t, "the attempts", out, "n1/1", "retry", "1.0s", "its attempt is not stored")
}
