package server_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"muster/jobs"
)

// hostsIn returns the column host of a file, and the text of one column of its first row.
func (w *world) hostsIn(path, token, column string) (hosts, first string) {
	w.t.Helper()
	res, text := w.raw("GET", path, nil, bearing(token))
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil || res.StatusCode != 200 || len(rows) == 0 {
		w.t.Fatalf("%s: %s %v\n%s", path, res.Status, err, text)
	}
	for n, row := range rows[1:] {
		for i, head := range rows[0] {
			if head == "host" || head == "name" {
				hosts += row[i] + " "
			}
			if head == column && n == 0 {
				first = row[i]
			}
		}
	}
	return strings.TrimSpace(hosts), first
}

// A file has what its reader may see, and nothing of the texts of hosts is a formula in it.
func TestFilesForSpreadsheetsAreThoseOfTheReader(t *testing.T) {
	t.Parallel()
	w, store := scoped(t)
	task := string(w.submit(run("fw-a[1,2],fw-b[1,2]")).Task)
	w.work("default", func(string) jobs.Result {
		return jobs.Result{Outcome: jobs.Failed, Error: "=1+1"}
	})
	kept(t, store, 4)
	all, own := w.token("viewer"), w.token("viewer-acme")
	if got, err := w.hostsIn("/history/jobs.csv?outcome=failed", all, "error"); len(strings.Fields(got)) != 4 ||
		!strings.HasPrefix(err, "'=") {
		t.Errorf("history has %q, with the error %q", got, err)
	}
	if got, _ := w.hostsIn("/history/jobs.csv", own, ""); !strings.Contains(got, "fw-a1") ||
		strings.Contains(got, "fw-b") {
		t.Errorf("history for acme has %q", got)
	}
	if got, _ := w.hostsIn("/history/jobs.csv?host=fw-a2&task="+task, own, ""); got != "fw-a2" {
		t.Errorf("history of one host has %q", got)
	}
	if got, _ := w.hostsIn("/fleet/hosts.csv", all, ""); got != "fw-a1 fw-a2 fw-b1 fw-b2" {
		t.Errorf("the fleet has %q", got)
	}
	if got, _ := w.hostsIn("/fleet/hosts.csv?on=all", own, ""); got != "fw-a1 fw-a2" {
		t.Errorf("the fleet for acme has %q", got)
	}
	if got, _ := w.hostsIn("/tasks/"+task+"/report.csv", all, ""); got != "fw-a1 fw-a2 fw-b1 fw-b2" {
		t.Errorf("the report has %q", got)
	}
	for _, path := range []string{"/tasks/" + task + "/report.csv", "/tasks/" + task + "/report.json"} {
		if res, text := w.raw("GET", path, nil, bearing(own)); res.StatusCode != 403 && res.StatusCode != 404 ||
			strings.Contains(string(text), "fw-b1") {
			t.Errorf("%s for acme: %s\n%s", path, res.Status, text)
		}
	}
	for path, words := range map[string]string{"/history/jobs.csv?outcome=nice": "query.outcome",
		"/fleet/hosts.json?on=nobody": "nobody is not in the inventory"} {
		if res, text := w.page(path, bearing(all)); res.StatusCode != 422 || !strings.Contains(text, words) {
			t.Errorf("%s: %s, want %q in\n%s", path, res.Status, words, text)
		}
	}
	for _, path := range []string{"/raw", "?find=x"} {
		if res, _ := w.page("/jobs/"+task+":fw-a1"+path, bearing(own)); res.StatusCode != 200 {
			t.Errorf("the own log %s: %s", path, res.Status)
		}
		if res, text := w.page("/jobs/"+task+":fw-b1"+path, bearing(own)); res.StatusCode != 403 && res.StatusCode != 404 ||
			res.Header.Get("Content-Disposition") != "" {
			t.Errorf("the log of another customer %s: %s\n%s", path, res.Status, text)
		}
	}
	var list []struct{ Name string }
	if _, text := w.raw("GET", "/fleet/hosts.json?on=fw-a*", nil, bearing(all)); json.Unmarshal(text, &list) != nil ||
		len(list) != 2 {
		t.Errorf("hosts as JSON: %s", text)
	}
}

// A search in a log shows the lines that have the text, as text.
func TestAJobsLogIsSearched(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := string(w.submit(run("fw001")).Task)
	w.work("default", func(string) jobs.Result {
		r := succeed("")
		r.Said.Output = []byte("first\n" + strings.Repeat("x\n", 50) + "<b>Disk</b> full\nlast\n")
		return r
	})
	_, raw := w.raw("GET", "/jobs/"+task+":fw001?find=disk", nil, http.Header{"Accept": {"text/html"}})
	if text := string(raw); !strings.Contains(text, "1 line has “disk”") ||
		!strings.Contains(text, "&lt;b&gt;<mark>Disk</mark>&lt;/b&gt; full") || !strings.Contains(text, "   52</span>") ||
		strings.Contains(text, "first") {
		t.Errorf("the search shows\n%s", text)
	}
	_, text := w.page("/jobs/"+task+":fw001?find=%3Cscript%3E", nil)
	if !strings.Contains(text, "No line of the log has “<script>”") {
		t.Errorf("a search for nothing shows\n%s", text)
	}
}
