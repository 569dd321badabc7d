package scripts

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readDoc(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../docs/RUNBOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// column reads the first column of the first table below a heading.
func column(t *testing.T, doc, heading string) []string {
	t.Helper()
	_, section, ok := strings.Cut(doc, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("docs/RUNBOOKS.md has no heading %q", heading)
	}
	var cells []string
	for line := range strings.Lines(section) {
		switch {
		case strings.HasPrefix(line, "| `"):
			cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| `"), "`")
			cells = append(cells, cell)
		case cells != nil, strings.HasPrefix(line, "#"):
			return cells
		}
	}
	return cells
}

func TestDocNamesEveryKeyTypeAndPlaceholder(t *testing.T) {
	t.Parallel()
	doc := readDoc(t)
	placeholders := []string{"{{ARGUMENT}}"}
	for _, g := range givens() {
		placeholders = append(placeholders, "{{"+g.name+"}}")
		if g.name == "host.customer" {
			placeholders = append(placeholders, "{{"+labelPrefix+"KEY}}", "{{"+savedPrefix+"NAME}}")
		}
	}
	var builtin []string
	for _, r := range Builtins() {
		builtin = append(builtin, r.Name)
	}
	tests := []struct {
		heading string
		want    []string
	}{
		{"## Keys of a runbook", keyNames(runbookKeys())},
		{"### Keys of retry", keyNames(retryKeys())},
		{"## Arguments", keyNames(argumentKeys())},
		{"### Types", typeNames()},
		{"## Steps", keyNames(stepKeys())},
		{"### Keys of upload", keyNames(uploadKeys())},
		{"### Keys of wait", keyNames(waitKeys())},
		{"### Keys of verify", keyNames(verifyKeys())},
		{"### Keys of reboot", keyNames(rebootKeys())},
		{"### Keys of confirm", keyNames(confirmKeys())},
		{"### Keys of gate", keyNames(gateKeys())},
		{"### Keys of ansible", keyNames(playbookKeys())},
		{"### Keys of expect", keyNames(expectKeys())},
		{"### Keys of classes", keyNames(classKeys())},
		{"### Keys of a step's retry", keyNames(againKeys())},
		{"### Keys of save", keyNames(saveKeys())},
		{"## Placeholders", placeholders},
		{"## Built-in runbooks", builtin},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, column(t, doc, test.heading)); diff != "" {
			t.Errorf("docs/RUNBOOKS.md, %s: -code +doc:\n%s", test.heading, diff)
		}
	}
}

func TestDocSaysWhichTypesAKeyIsFor(t *testing.T) {
	t.Parallel()
	doc := readDoc(t)
	for _, k := range keyNames(argumentKeys()) {
		var types []string
		for _, r := range typeRules() {
			for _, own := range r.keys {
				if own == k {
					types = append(types, string(r.name))
				}
			}
		}
		want := strings.Join(types, ", ")
		switch len(types) {
		case 0:
			want = "all"
		case len(typeRules()) - 1:
			want = "all but file"
		}
		if row := "| `" + k + "` | " + want + " |"; !strings.Contains(doc, row) {
			t.Errorf("docs/RUNBOOKS.md has no row that begins %s", row)
		}
	}
}

func TestDocExamplesAreRunbooks(t *testing.T) {
	t.Parallel()
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readDoc(t), -1)
	if len(examples) < 2 {
		t.Fatalf("found %d examples: want at least 2", len(examples))
	}
	for _, example := range examples {
		if _, err := Parse("docs/RUNBOOKS.md", []byte(example[1])); err != nil {
			t.Errorf("%v\nin\n%s", err, example[1])
		}
	}
}

func TestExampleRunbooksAreGood(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../etc/examples/runbooks/*.yaml")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".test.yaml") {
			continue // cases, which a test of the command does
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewCatalog([]Source{{File: file, Data: data}}); err != nil {
			t.Error(err)
		}
	}
}

func TestExampleRunbookIsGood(t *testing.T) {
	t.Parallel()
	const file = "../etc/examples/runbooks/disk-usage.yaml"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCatalog([]Source{{File: file, Data: data}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Lookup("disk-usage")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Bind(map[string]string{"path": "/var/log", "full": "85"}, nil); err != nil {
		t.Error(err)
	}
}
