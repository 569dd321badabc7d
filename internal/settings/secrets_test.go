package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/seal"
)

func TestKeyFileOthersCouldReadIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := seal.FormatKey([seal.KeySize]byte{1})
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"right", good, 0o400, ""},
		{"its owner may write", good, 0o600, ""},
		{"group", good, 0o440, "has mode 0440, so others can use it: chmod 400"},
		{"others", good, 0o404, "has mode 0404"},
		{"others may write", good, 0o602, "has mode 0602"},
		{"too short", "c2hvcnQ\n", 0o400, "line 1: the key has 5 bytes: want 32"},
		{"empty", "", 0o400, "there is no key in it"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		_, err := read(Source{Flags: map[string]any{"secrets.key": path}}, here)
		if c.want == "" && err != nil || c.want != "" && (err == nil ||
			!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := read(Source{Flags: map[string]any{"secrets.key": path}}, here); err == nil ||
			!strings.Contains(err.Error(), "secrets.key: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A changed file of rules is in force at once, and others must not be able to change it.
func TestTheRulesForReferencesAreFollowed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "references.yaml")
	put := func(text string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	read := SourcesOf(path)
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
	}{
		{"allow: []\n", 0o644, ""}, {"allow: {}\n", 0o644, path + ":1: allow is a mapping: want a list"},
		{"allow: []\nunsigned: true\n", 0o600, ""}, {"allow: []\n", 0o666, "has mode 0666, so others can change it"},
	} {
		put(c.text, c.mode)
		cfg, err := read()
		if c.want == "" && (err != nil || cfg.Unsigned != strings.Contains(c.text, "unsigned")) ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q, mode %o: %+v, %v, want %q", c.text, c.mode, cfg, err, c.want)
		}
	}
	if SourcesOf("") != nil {
		t.Error("without a file there are rules")
	}
}
