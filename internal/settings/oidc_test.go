package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server with a mistake in server.oidc does not start, and hears all mistakes.
func TestMistakesInServerOIDCAreAllTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	read := func(more string) (Settings, error) {
		t.Helper()
		path := filepath.Join(dir, "muster.yaml")
		if err := os.WriteFile(path, []byte("server:\n  url: https://muster.example\n  oidc:\n"+more), 0o600); err != nil {
			t.Fatal(err)
		}
		return Read(Source{File: path})
	}
	_, err := read("    issuer: idp.example\n    groups: [x, 'NOC=group:noc', 'NOC=os-group:root']\n")
	for _, want := range []string{`issuer = "idp.example"`, "client_id", `"x": want NAME=`, "os-group"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if _, err = read("    isuer: x\n"); err == nil || !strings.Contains(err.Error(), "issuer") {
		t.Errorf("an unknown key: %v", err)
	}
	secret := filepath.Join(dir, "secret")
	rest := "    issuer: https://idp.example\n    client_id: muster\n    groups: ['Net Ops=group:ops']\n"
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string // in the error; empty: none
	}{
		"good":            {"s3cret\n", 0o600, ""},
		"others read it":  {"s3cret\n", 0o644, "0644"},
		"empty":           {"\n", 0o600, "want one line"},
		"two lines":       {"a\nb\n", 0o600, "want one line"},
		"it is not there": {"", 0, "no such file"},
	} {
		os.Remove(secret)
		if c.mode != 0 {
			if err := os.WriteFile(secret, []byte(c.text), c.mode); err != nil {
				t.Fatal(err)
			}
		}
		s, err := read(rest + "    client_secret_file: " + secret + "\n")
		if err != nil {
			t.Fatal(name, err)
		}
		got := s.Server.OIDC.check()
		if (got == nil) != (c.want == "") || got != nil && !strings.Contains(got.Error(), c.want) {
			t.Errorf("%s: %v", name, got)
		}
		if got != nil && strings.Contains(got.Error(), "s3cret") {
			t.Errorf("%s: the error has the secret", name)
		}
	}
	s, err := read(rest)
	if err != nil || s.Server.OIDC.check() == nil {
		t.Errorf("no file: %v", err)
	}
	if text, err := s.Server.OIDC.config().Secret(); err == nil {
		t.Errorf("no file: %q", text)
	}
}
