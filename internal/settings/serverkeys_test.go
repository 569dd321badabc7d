package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/local"
	"muster/internal/serverkey"
)

// replace puts a file with a mode and a time in its place, by renaming, as people's tools do.
func replace(t *testing.T, path, text string, mode os.FileMode, at time.Time) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(next, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(next, at, at); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func TestTheKeyOfServersIsReadAgainWhenItsFileChanges(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "server.key")
	old := time.Now().Add(-time.Hour)
	replace(t, path, serverkey.File("i1234", [serverkey.Size]byte{1}), 0o400, old)
	keys := ServerKeys(path)
	mac := func() string {
		t.Helper()
		k, err := keys()
		if err != nil {
			t.Fatal(err)
		}
		return k.MAC(serverkey.Tokens, "x")
	}
	first := mac()
	if mac() != first {
		t.Error("the same file gives another key")
	}
	replace(t, path, serverkey.File("i1234", [serverkey.Size]byte{2}), 0o400, old)
	if mac() == first {
		t.Error("a file that was put in its place, with the same time and size, does not count")
	}
	// A file that changes twice within a tick of its clock has the same time and size both times.
	now := time.Now()
	replace(t, path, serverkey.File("i1234", [serverkey.Size]byte{3}), 0o600, now)
	third := mac()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(serverkey.File("i1234", [serverkey.Size]byte{4})); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, now, now); err != nil {
		t.Fatal(err)
	}
	if mac() == third {
		t.Error("a change within the same moment does not count")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := keys(); err == nil || !strings.Contains(err.Error(), "server.key: ") {
		t.Errorf("a file that is gone: %v", err)
	}
	if k, err := ServerKeys("")(); err != nil || !k.None() {
		t.Errorf("without a file: %v, %v", k, err)
	}
}

func TestTheKeyOfServersHasAPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "server.key")
	replace(t, path, serverkey.File("i1234", [serverkey.Size]byte{1}), 0o440, time.Now())
	s, err := read(Source{Flags: map[string]any{"server.key": path}}, here)
	if err != nil {
		t.Errorf("nodes need not be able to read the key: %v", err)
	}
	err = s.CheckServer()
	if err == nil || !strings.Contains(err.Error(), "server.key: "+path+" has mode 0440") {
		t.Errorf("a key that others can read: %v", err)
	}
	s, err = read(Source{Flags: map[string]any{"server.key": filepath.Join(dir, "none")}}, here)
	if err = errors.Join(err, s.CheckServer()); err == nil || !strings.Contains(err.Error(), "server.key: ") {
		t.Errorf("a file that is not there: %v", err)
	}
	if got := (local.Machine{UID: 0}).ServerKey(); got != "/etc/muster/server.key" {
		t.Errorf("root's is %q", got)
	}
	if got := (local.Machine{UID: 1000}).ServerKey(); got != "" {
		t.Errorf("that of a user without a home is %q", got)
	}
	if present(path) != path || present(filepath.Join(dir, "none")) != "" || present("") != "" ||
		present(path+"/below") != path+"/below" {
		t.Error("what is there, and what is not, are mixed up")
	}
}
