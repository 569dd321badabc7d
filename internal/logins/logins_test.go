package logins_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/logins"
)

func TestALoginIsOfOneServerAndOneUser(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	const server = "https://Muster.example:7070/"
	if got, err := logins.Token("", server); got != "" || err != nil {
		t.Errorf("before: %q, %v", got, err)
	}
	if _, err := logins.Find(server); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	l := logins.Login{Server: server, Token: "mss_x", Session: "x", Principal: "oidc:x", Expires: time.Now()}
	for range 2 {
		if err := logins.Keep(l); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[string]string{server: "mss_x", "https://muster.example:7070": "mss_x",
		"https://muster.example": "", "http://muster.example:7070": "", "": "", "unix:///x": ""} {
		if got, err := logins.Token("", at); got != want || err != nil {
			t.Errorf("at %q: %q, %v", at, got, err)
		}
	}
	if got, _ := logins.Token("mst_y", server); got != "mst_y" {
		t.Errorf("a token that was given: %q", got)
	}
	list, err := filepath.Glob(filepath.Join(dir, "muster/logins/*"))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	info, err := os.Stat(list[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %s, %v", info.Mode(), err)
	}
	if err := os.Chmod(list[0], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := logins.Token("", server); err == nil || !strings.Contains(err.Error(), "0644") {
		t.Errorf("a file that others can read: %v", err)
	}
	if err := os.WriteFile(list[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(list[0], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := logins.Token("", server); err == nil || !strings.Contains(err.Error(), "no login") {
		t.Errorf("a broken file: %v", err)
	}
	if err := logins.Drop(server); err != nil {
		t.Error(err)
	}
	if got, err := logins.Token("", server); got != "" || err != nil {
		t.Errorf("after: %q, %v", got, err)
	}
}
