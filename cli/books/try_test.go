package books

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/cli"
)

const exampleBooks = "../../etc/examples/runbooks"

// This test runs the cases of the examples as their reader would.
func TestTheCasesOfTheExamplesAreAsWanted(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := testFlags{output: cli.OutputTable}
	if err := f.test(t.Context(), &out, []string{exampleBooks}); err != nil ||
		strings.Count(out.String(), "ok  ") < 7 {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestTheCasesOfTheDocAreAsWanted(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../../docs/RUNBOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, cases, _ := strings.Cut(string(doc), "```yml\n")
	cases, _, _ = strings.Cut(cases, "```")
	book, err := filepath.Abs(exampleBooks + "/apt-upgrade.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(book, dir+"/doc.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/doc.test.yaml", []byte(cases), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := (testFlags{output: cli.OutputTable}).test(t.Context(), &out, []string{dir}); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}
