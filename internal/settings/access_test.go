package settings

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/access"
)

func TestTheAccessFileIsFollowed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "access.yaml")
	at := time.Now().Add(-time.Hour)
	read := Policy(Access{File: path, Optional: true}, "ann")
	admins := func() []string {
		t.Helper()
		p, err := read()
		if err != nil {
			t.Fatal(err)
		}
		return p.Admins()
	}
	if got := admins(); !slices.Equal(got, []string{"os:ann", "os:root"}) {
		t.Errorf("without a file: %q", got)
	}
	const one = "who: [{principal: os:bob, roles: [admin]}]\n"
	replace(t, path, one, 0o644, at)
	if got := admins(); !slices.Equal(got, []string{"os:bob"}) {
		t.Errorf("with a file: %q", got)
	}
	was, err := read()
	if err != nil {
		t.Fatal(err)
	}
	replace(t, path, one, 0o600, time.Now())
	if same, err := read(); err != nil || same != was {
		t.Errorf("the same text in another file is another policy: %v", err)
	}
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"the group may write": {one, 0o664, "server.access: " + path + " has mode 0664, so others can change it: chmod 444"},
		"others may write":    {one, 0o646, "has mode 0646"},
		"a mistake":           {"who:\n  - {principal: os:bob, roles: [admn]}\n", 0o644, path + ":2: "},
		"no document":         {"", 0o644, path},
	} {
		replace(t, path, c.text, c.mode, at)
		if p, err := read(); err == nil || !strings.Contains(err.Error(), c.want) || p != nil {
			t.Errorf("%s: %v, %v, want %q", name, p, err, c.want)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := admins(); !slices.Equal(got, []string{"os:ann", "os:root"}) {
		t.Errorf("after it was removed: %q", got)
	}
	if _, err := Policy(Access{File: path}, "ann")(); err == nil || !strings.Contains(err.Error(), "server.access: ") {
		t.Errorf("a file that must be there: %v", err)
	}
	if p, err := Policy(Access{}, "ann")(); err != nil || p.Anything(access.Who{Principal: "os:bob"}) {
		t.Errorf("no file at all: %v", err)
	}
	if os.Geteuid() == 0 {
		replace(t, path, one, 0o644, at)
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := read(); err == nil || !strings.Contains(err.Error(), "belongs to uid 12345") {
			t.Errorf("a file of somebody else: %v", err)
		}
	}
}
