package sheets

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"muster/server/pages/frame"
)

func TestACellIsNeverAFormula(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"": "", "fw001": "fw001", "=1+1": "'=1+1", "+41": "'+41",
		"-1": "'-1", "@SUM(A1)": "'@SUM(A1)", " =1": "' =1", "\t=1": "'\t=1", "\r=1": `\x0d=1`, "\n=1": "'\n=1",
		"＝1": "'＝1", "\ufeff=1": `\ufeff=1`, "a=b": "a=b", "\x1b[2J": `\x1b[2J`,
		"=cmd|' /C calc'!A1": "'=cmd|' /C calc'!A1"} {
		if got := cell(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

// served gives the pages of a room, before an API that answers as told, to a browser.
func served(t *testing.T, api http.HandlerFunc) string {
	t.Helper()
	p := frame.NewFrame(frame.Needs{API: api}, Content())
	s := httptest.NewUnstartedServer(p)
	s.Config.ErrorLog = nil
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// get returns the status and the text of an answer, and the error that ended it.
func get(t *testing.T, url string) (*http.Response, string, error) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res, string(text), err
}

// pastPages answers questions about history with pages of one job, and fails at one of them.
func pastPages(pages, broken int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n := 0
		if cursor := r.URL.Query().Get("cursor"); cursor != "" {
			fmt.Sscan(cursor, &n)
		}
		if n == broken {
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"detail":"history is away"}`)
			return
		}
		next := ""
		if n+1 < pages {
			next = fmt.Sprint(n + 1)
		}
		fmt.Fprintf(w, `{"jobs":[{"id":"0wcy7y2fb2:fw%03d","host":"fw%03d","state":"ended","outcome":"failed",
			"error":"=HYPERLINK(\"http://evil/\"), \"a\"\nb"}],"next":%q}`, n, n, next)
	}
}

func TestAFileHasAllPagesOfAList(t *testing.T) {
	t.Parallel()
	url := served(t, pastPages(3, -1))
	res, text, err := get(t, url+"/history/jobs.csv?outcome=failed")
	if err != nil || res.StatusCode != 200 ||
		res.Header.Get("Content-Disposition") != `attachment; filename="history.csv"` {
		t.Fatalf("%v %s %v", err, res.Status, res.Header)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 4 || rows[0][1] != "host" || rows[3][1] != "fw002" {
		t.Fatalf("%v: %q", err, rows)
	}
	if got := rows[1][8]; got != "'=HYPERLINK(\"http://evil/\"), \"a\"\nb" {
		t.Errorf("the error of a host is %q", got)
	}
	_, text, err = get(t, url+"/history/jobs.json")
	var list []struct{ Host, Error string }
	if json.Unmarshal([]byte(text), &list) != nil || err != nil || len(list) != 3 || list[2].Host != "fw002" ||
		!strings.HasPrefix(list[0].Error, "=HYPERLINK") {
		t.Errorf("%v: %s", err, text)
	}
}

// A file that ends early is cut, so that no browser takes it for whole; a mistake before its first
// line is a page.
func TestAFileThatBreaksOffIsNotWhole(t *testing.T) {
	t.Parallel()
	url := served(t, pastPages(3, 2))
	for _, ending := range []string{"csv", "json"} {
		if _, text, err := get(t, url+"/history/jobs."+ending); err == nil {
			t.Errorf("%s: a part of a list looks whole:\n%s", ending, text)
		}
	}
	res, text, err := get(t, served(t, pastPages(3, 0))+"/history/jobs.csv")
	if err != nil || res.StatusCode != 503 || !strings.Contains(text, "history is away") {
		t.Errorf("%v %s %s", err, res.Status, text)
	}
}
