package history_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// modernc.org/sqlite is C translated for one version of modernc.org/libc; with another
// one it builds, and then breaks in ways nobody has tested. A library beside it that
// wants a newer one raises it without a word.
func TestSQLiteRunsOnTheLibcItWasMadeFor(t *testing.T) {
	t.Parallel()
	list := func(format, module string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", format, module).Output()
		if err != nil {
			t.Fatalf("go list %s: %v", module, err)
		}
		return strings.TrimSpace(string(out))
	}
	text, err := os.ReadFile(list("{{.GoMod}}", "modernc.org/sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`modernc\.org/libc (v\S+)`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("go.mod of modernc.org/sqlite names no libc:\n%s", text)
	}
	if got, want := list("{{.Version}}", "modernc.org/libc"), string(m[1]); got != want {
		t.Errorf("modernc.org/libc is %s, modernc.org/sqlite was made for %s: another module has raised "+
			"it (goose v3.29.0 did); take a version of that which does not", got, want)
	}
}
