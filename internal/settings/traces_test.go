package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTracesAreCheckedWhole(t *testing.T) {
	t.Parallel()
	const cut = "muster.yaml:1: traces.one_in = \"some\": want a whole number"
	for text, want := range map[string]string{
		"traces: {endpoint: 'http://127.0.0.1:4318', one_in: 1}": "",
		"traces: {one_in: some}":                                 cut,
		"traces: {endpont: x}":                                   "did you mean traces.endpoint?",
		"traces: {one_in: -1}":                                   "traces.one_in = -1",
		"traces: {endpoint: 'https://c.example'}\nhistory: {url: none}": "traces are made of what history " +
			"stores",
		"traces: {headers_file: /x}":            "traces.endpoint, which is empty",
		"traces: {endpoint: 'ftp://c.example'}": "traces.endpoint is no such URL",
	} {
		_, err := read(Source{File: write(t, text)}, here)
		if (err == nil) != (want == "") || want != "" && strings.Count(err.Error(), want) != 1 {
			t.Errorf("%s: %v; want %q once", text, err, want)
		}
	}
}

func TestHeadersOfTracesAreOfTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "headers")
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
	}{{"Authorization: Bearer swordfish\n", 0o400, ""},
		{"Authorization: Bearer swordfish\n", 0o644, "mode 0644, so others can use it"},
		{"Authorization: Bearer x\nswordfish\n", 0o600, "headers:2: want Name: value"}, {"", 0o600, "no header"}} {
		os.Remove(path)
		if err := os.WriteFile(path, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		s := Traces{Endpoint: "https://c.example", HeadersFile: path, Timeout: 1}
		err := s.check()
		if (err == nil) != (c.want == "") || !strings.Contains(fmt.Sprint(err), c.want) && c.want != "" ||
			strings.Contains(fmt.Sprint(err), "swordfish") {
			t.Errorf("%q: %v; want %q", c.text, err, c.want)
		}
	}
	s := Traces{Endpoint: "https://c.example", Timeout: 1}
	s.TLS.CA, s.TLS.Cert, s.TLS.Key = "/none", "/none", "/none"
	if err := s.check(); err == nil || !strings.Contains(err.Error(), "traces.tls.ca") {
		t.Errorf("missing certificates: %v", err)
	}
}

func TestLinesOfALogHaveTracesWhereTheyServe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"log: {format: text}": false, "log: {format: json}": true,
		"traces: {endpoint: 'http://127.0.0.1:4318'}": true} {
		s, err := read(Source{File: write(t, text)}, here)
		if err != nil || s.Log.Traces != want || s.Log.Node != "here" {
			t.Errorf("%s: %+v, %v", text, s.Log, err)
		}
	}
}
