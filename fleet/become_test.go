package fleet_test

import (
	"strings"
	"testing"

	"muster/fleet"
)

func TestBecomeIsReadFromFilesDefaultsAndOverrides(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
defaults: {user: ops, known_hosts: /kh, become: sudo}
hosts:
  - {name: a, address: a}
  - {name: b, address: b, become_user: backup}
  - {name: c, address: c, become: none}
  - {name: d, address: d, become_user: ops}
  - {name: e, address: e, user: root}
  - {name: f, address: f, become: none}
overrides:
  - {on: f, become: sudo, become_user: www}
`)
	want := map[string]string{"a": "root", "b": "backup", "f": "www"}
	for _, h := range inv.Hosts() {
		if got := h.BecomesUser(); got != want[h.Name] {
			t.Errorf("%s becomes %q, want %q", h.Name, got, want[h.Name])
		}
	}
}

func TestBecomeByAnotherWayThanSudoIsAMistake(t *testing.T) {
	t.Parallel()
	_, err := fleet.Parse(fleet.Source{Name: "f", Data: []byte(`
defaults: {user: ops, known_hosts: /kh}
hosts:
  - {name: a, address: a, become: su}
  - {name: b, address: b, become_user: backup}
  - {name: c, address: c, become: sudo, become_user: -x}
`)})
	if err == nil {
		t.Fatal("it was read")
	}
	for _, want := range []string{
		`f:4: host a: become "su": want sudo or none, muster becomes another user by sudo alone`,
		`f:5: host b: become_user is given without become: add become: sudo`,
		`f:6: host c: become_user "-x" starts with '-': want a login name`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
