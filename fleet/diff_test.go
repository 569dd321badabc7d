package fleet_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	from := parse(t, `
defaults: {known_hosts: /kh}
hosts:
  - {name: gone, address: x}
  - {name: same, address: x, labels: {a: b}}
  - {name: new, address: x, port: 22, labels: {role: fw, old: x}, host_key: "`+keyA+`"}
limits: {a/b: 1, c/d: 2, e/f: 3}
`)
	to := parse(t, `
defaults: {known_hosts: /kh}
hosts:
  - {name: same, address: x, labels: {a: b}}
  - {name: new, address: y, port: 23, labels: {role: vpn, new: x}, host_keys: ["`+keyA+`", "`+keyB+`"], jump: same}
  - {name: come, address: x}
limits: {a/b: 1, c/d: {max: 2, zone: zrh}, g/h: 4}
`)
	c := fleet.Diff(from, to)
	hop := `[{"name":"same","address":"x","port":22,"user":"root"}]`
	want := fleet.Changes{
		Added: []string{"come"}, Removed: []string{"gone"},
		Changed: []fleet.HostChange{{Host: "new", Fields: []fleet.Change{
			{Field: "address", From: "x", To: "y"}, {Field: "port", From: "22", To: "23"},
			{Field: "host_keys", From: keyA, To: keyA + ", " + keyB}, {Field: "jump", To: hop},
			{Field: "labels.new", To: "x"}, {Field: "labels.old", From: "x"},
			{Field: "labels.role", From: "fw", To: "vpn"},
		}}},
		Limits: []fleet.Change{{Field: "c/d", From: "2 in zone default", To: "2 in zone zrh"},
			{Field: "e/f", From: "3 in zone default"}, {Field: "g/h", To: "4 in zone default"}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	if s := c.String(); s != "1 added: come; 1 removed: gone; 1 changed: new; 3 limits changed" {
		t.Error(s)
	}
	if c := fleet.Diff(to, to); !c.Empty() || c.String() != "nothing" {
		t.Error(c)
	}
	if c := fleet.Diff(nil, to); len(c.Added) != 3 || len(c.Removed) != 0 {
		t.Error(c)
	}
}

// Every field of a host is written, read again and compared by Diff.
func TestEveryFieldIsWrittenAndCompared(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
defaults: {user: ops, known_hosts: /kh}
hosts:
  - {name: "007", address: "::1"}
  - name: full
    address: full.example.com
    port: 2222
    user: "on"
    key: /k
    host_keys: ["`+keyA+`", "`+keyB+`"]
    customer: "true"
    zone: zrh
    group: pair
    fence: none
    labels: {role: "null", n: "1", empty: ""}
    jump: ["007"]
    certificate: /c
    profile: legacy
    become: sudo
    become_user: backup
    host_ca: ["`+keyA+`"]
    principals: [x, y]
    revoked: ["`+keyB+`"]
limits: {role/null: {max: 3, zone: zrh}, x/y: 0}
`)
	full, _ := inv.Host("full")
	for _, f := range reflect.VisibleFields(reflect.TypeFor[fleet.Host]()) {
		if !f.Anonymous && reflect.ValueOf(full).FieldByIndex(f.Index).IsZero() {
			t.Errorf("this test does not set %s", f.Name)
		}
	}
	text, err := inv.YAML("/else")
	if err != nil {
		t.Fatal(err)
	}
	again, err := fleet.Parse(fleet.Source{Name: "again", Data: text})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if c := fleet.Diff(inv, again); !c.Empty() || again.Version() != inv.Version() {
		t.Errorf("%+v\n%s", c, text)
	}
	bare := parse(t, "defaults: {known_hosts: /kh}\nhosts: [{name: full, address: x}, {name: '007', address: x}]")
	var fields []string
	for _, h := range fleet.Diff(bare, inv).Changed {
		if h.Host == "full" {
			for _, f := range h.Fields {
				fields = append(fields, f.Field)
			}
		}
	}
	want := "address port user key host_keys customer zone group fence jump certificate profile " +
		"become become_user host_cas principals revoked labels.empty labels.n labels.role"
	if got := strings.Join(fields, " "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestSharedValuesBecomeDefaults(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
hosts:
  - {name: a, address: a, user: ops, zone: zrh, known_hosts: /kh, customer: x}
  - {name: b, address: b, user: ops, zone: fra, known_hosts: /kh}
`)
	text, err := inv.YAML("/else")
	want := `defaults:
  user: ops
  known_hosts: /kh
hosts:
  - name: a
    address: a
    customer: x
    zone: zrh
  - name: b
    address: b
    zone: fra
`
	if err != nil || string(text) != want {
		t.Errorf("%v\n%s", err, text)
	}
}
