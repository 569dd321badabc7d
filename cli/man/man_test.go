package man

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// hard has texts that would be something else in the language of man(7).
func hard() *cobra.Command {
	root := &cobra.Command{Use: "prog", Short: "Do 'it'", Long: ".TH is no request here.\n'nor this\n\n" +
		`A back\slash, a - hyphen, a ^caret, a ~tilde and a ` + "`grave`.\n\n  kept   as\n    it is\n.stands"}
	root.AddCommand(&cobra.Command{Use: "sub THING", Short: "Do less", Example: "  prog sub 'x' --force # .y",
		Run: func(*cobra.Command, []string) {}})
	root.AddCommand(&cobra.Command{Use: "secret", Hidden: true, Run: func(*cobra.Command, []string) {}})
	root.Commands()[1].Flags().BoolP("force", "f", false, "do it `now`, at --once")
	return root
}

// groff judges the pages: with all its warnings it has none, and what it sets has every sign.
func TestPagesSayWhatHelpSays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := WriteAll(hard(), dir, "1.2"); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(found) != 2 {
		t.Fatalf("pages: %q, %v; want prog.1 and prog-sub.1", found, err)
	}
	for page, want := range map[string][]string{
		"prog.1": {"prog - Do 'it'", ".TH is no request here. 'nor this",
			"a - hyphen, a ^caret, a ~tilde and a `grave`.", `A back\slash`,
			"kept   as", "  it is", ".stands", "prog-sub(1)", "muster 1.2"},
		"prog-sub.1": {"prog sub THING", "-f, --force now", "at --once", "prog sub 'x' --force # .y", "prog(1)"},
	} {
		text := set(t, filepath.Join(dir, page))
		for _, w := range want {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(w), " ")) {
				t.Errorf("%s lacks %q:\n%s", page, w, text)
			}
		}
	}
}

// set returns a page as a terminal shows it.
func set(t *testing.T, path string) string {
	t.Helper()
	if _, err := exec.LookPath("groff"); err != nil {
		if _, err := os.Stat("/etc/debian_version"); err == nil && os.Getuid() == 0 {
			t.Fatal("there is no groff: run `make test`, which installs it")
		}
		t.Skip("there is no groff on this machine")
	}
	c := exec.Command("groff", "-ww", "-man", "-Tascii", "-P-c", "-rLL=200n", path)
	var warned strings.Builder
	c.Stderr = &warned
	out, err := c.Output()
	if err != nil || warned.Len() > 0 {
		t.Errorf("%s: %v: %s", path, err, &warned)
	}
	var b strings.Builder
	for _, r := range string(out) { // bold is a sign, a step back and the sign once more
		if r != '\b' {
			b.WriteRune(r)
			continue
		}
		s := b.String()
		b.Reset()
		b.WriteString(s[:len(s)-1])
	}
	return b.String()
}
