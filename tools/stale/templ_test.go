package stale

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestThePagesAreMadeOfTheirSources makes the Go of the pages again.
func TestThePagesAreMadeOfTheirSources(t *testing.T) {
	const from = "../../server/pages"
	dir := t.TempDir()
	list, err := filepath.Glob(from + "/*/*.templ")
	if err != nil || len(list) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	for _, name := range list {
		text, err := os.ReadFile(name)
		if err == nil {
			to := filepath.Join(dir, filepath.Base(filepath.Dir(name)))
			err = errors.Join(os.MkdirAll(to, 0o700),
				os.WriteFile(filepath.Join(to, filepath.Base(name)), text, 0o600))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c := exec.CommandContext(t.Context(), "go", "tool", "templ", "generate", "-path", dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("templ: %v\n%s", err, out)
	}
	for _, name := range list {
		made := filepath.Join(filepath.Base(filepath.Dir(name)),
			strings.TrimSuffix(filepath.Base(name), ".templ")+"_templ.go")
		want, err := os.ReadFile(filepath.Join(dir, made))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(from, made))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not made of %s as it is: run tools/templ.sh (%v)", made, filepath.Base(name), err)
		}
	}
}
