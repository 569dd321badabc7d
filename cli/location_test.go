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
	key := regexp.MustCompile(`^"[A-Z]+ /v1/[^" ]*"$`) // a table by routes has them as keys, which nobody reads
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
			if key.Match(words) {
				continue
			}
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

// A mistake never names a flag that the command does not have.
func TestAMistakeNamesOnlyFlagsOfItsCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, location, want string }{
		{"/v1/tasks", "body.files", "--arg-file: "}, {"/v1/tasks", "body.on", "--on: "},
		{"/v1/schedules", "body.files", ""}, {"/v1/windows", "body.files", ""}, {"/v1/freezes", "body.files", ""},
		{"/v1/freezes/fa/lift", "body.files", ""}, {"/v1/approvals/x/withdraw", "body.files", ""},
		{"/v1/freezes", "body.until", "--until: "}, {"/v1/hosts/query", "body.on", "selector: "},
		{"/v1/schedules/nightly/run", "body.on", "schedule nightly, on: "},
		{"/v1/schedules/nightly/run", "body.rollout.soak", "schedule nightly, soak: "},
		{"/v1/schedules/nightly/run", "body.as", "--as: "}, {"/v1/history/events", "query.of", ""},
	} {
		if got := (asked{c.path}).place(c.location); got != c.want {
			t.Errorf("%s at %s is shown as %q, want %q", c.location, c.path, got, c.want)
		}
	}
}
