package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Messages of the server appear on the command line too: each of their locations is known here as a
// flag, and no message sends an operator to a route of the API.
func TestWordsOfTheServerFitTheCommandLine(t *testing.T) {
	t.Parallel()
	var files []string
	err := filepath.WalkDir("../server", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	location := regexp.MustCompile(`"((?:body|path|query)(?:\.[a-z_]+)*)"`)
	route := regexp.MustCompile(`"[^"\n]*(?:GET|POST|PUT|DELETE) /v1/[^"\n]*"`)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range location.FindAllSubmatch(text, -1) {
			found++
			if got := place(string(m[1])); strings.HasPrefix(got, string(m[1])) {
				t.Errorf("%s: %s is shown as %q: name its flag in flagsOf", file, m[1], got)
			}
		}
		for _, words := range route.FindAll(text, -1) {
			t.Errorf("%s: %s: name the command that does it", file, words)
		}
	}
	if found < 60 {
		t.Errorf("%d locations found, want those of the server", found)
	}
	for location, want := range map[string]string{"body.outcomes[1]": "--outcome: ", "query.limit": "--limit: ",
		"query.skip_missing": "--skip-missing: ", "weird.thing": "weird.thing: ", "body.hosts[12]": ""} {
		if got := place(location); got != want {
			t.Errorf("%s is shown as %q, want %q", location, got, want)
		}
	}
}
