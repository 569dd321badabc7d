package founding

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/serverkey"
)

// A key that is made like another one is of the same installation, and another key.
func TestAKeyLikeAnother(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "server.key")
	old, err := MakeKey(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	text, err := keyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	next, err := write(path+".next", text, 0)
	if err != nil || next.Installation != old.Installation || next.AuditKey == old.AuditKey {
		t.Errorf("%+v, %v; was %+v", next, err, old)
	}
	data, err := os.ReadFile(path + ".next")
	if err != nil {
		t.Fatal(err)
	}
	k, err := serverkey.Parse(data)
	if err != nil || len(k.Publics(serverkey.Audit)) != 2 {
		t.Errorf("%v, %v", k.Publics(serverkey.Audit), err)
	}
	if err := os.WriteFile(path+".bad", []byte("nonsense\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	for like, want := range map[string]string{path + ".none": "--like: ", path + ".bad": "it is no key of servers"} {
		if _, err := keyFile(like); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--like %s: %v, want %q", like, err, want)
		}
	}
}
