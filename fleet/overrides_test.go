package fleet_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
)

const three = `
defaults: {known_hosts: /kh}
hosts:
  - {name: a, address: a, labels: {role: fw, wave: early}}
  - {name: b, address: b, labels: {role: fw}, user: admin, group: g, host_key: "` + keyA + `"}
  - {name: c, address: c, group: g, certificate: /c}
`

func TestOverrides(t *testing.T) {
	t.Parallel()
	_, err := fleet.Parse(fleet.Source{Name: "o", Data: []byte(`
overrides:
  - {on: role=fw, user: ops, port: 2222, labels: {wave: late, site: x}}
  - {on: 'a,b', fence: none, customer: acme}
  - {on: b, user: last, host_key: "` + keyB + `", jump: a}
  - {on: c, known_hosts: /other, host_ca: "` + keyA + `", customer: acme, certificate: ""}
  - {on: wave=late, user: nobody}   # as the sources have it, no host is in this wave
`)}, fleet.Source{Name: "h", Data: []byte(three)})
	if err == nil || !strings.HasPrefix(err.Error(), "o:7: override: ") || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%v", err)
	}
	inv, err := fleet.Parse(fleet.Source{Name: "o", Data: []byte(`
overrides:
  - {on: role=fw, user: ops, port: 2222, labels: {wave: late, site: x}}
  - {on: 'a,b', fence: none, customer: acme}
  - {on: b, user: last, host_key: "` + keyB + `", jump: a}
  - {on: c, known_hosts: /other, host_ca: "` + keyA + `", customer: acme, certificate: ""}
`)}, fleet.Source{Name: "h", Data: []byte(three)})
	if err != nil {
		t.Fatal(err)
	}
	base := fleet.Host{Port: 2222, Fence: fleet.FenceNone, Customer: "acme", Zone: "default"}
	a, b := base, base
	a.Name, a.Address, a.User = "a", "a", "ops"
	a.Labels = map[string]string{"role": "fw", "wave": "late", "site": "x"}
	b.Name, b.Address, b.User, b.Group = "b", "b", "last", "g"
	b.Labels, b.HostKeys = map[string]string{"role": "fw", "wave": "late", "site": "x"}, []string{keyB}
	b.Jump = []fleet.Hop{a.Hop()}
	c := fleet.Host{Name: "c", Address: "c", Port: 22, User: "root", Group: "g", Customer: "acme",
		Zone: "default", Fence: fleet.FenceAuto, HostCert: fleet.HostCert{HostCAs: []string{keyA}}}
	if diff := cmp.Diff([]fleet.Host{a, b, c}, inv.Hosts()); diff != "" {
		t.Error(diff)
	}
	if inv.KnownHosts("a") != "/kh" || inv.KnownHosts("b") != "" || inv.KnownHosts("c") != "/other" {
		t.Error(inv.KnownHosts("a"), inv.KnownHosts("b"), inv.KnownHosts("c"))
	}
}

func TestOverridesHaveMistakes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{user: x}":                     "o:2: override: on is missing",
		"{on: a}":                       "o:2: override on a: it changes nothing",
		"{on: 'a,,b', user: x}":         "o:2: override: on ",
		"{on: a, name: b}":              `o:2: override: unknown key "name"`,
		"{on: a, port: 0}":              "o:2: override on a: port 0: want 1 to 65535",
		"{on: nowhere, user: x}":        "o:2: override: ",
		"{on: a, host_key: x}":          `o:2: override on a: host key "x" has no known type`,
		"{on: a, group: g2, zone: hub}": `o:2: override on a: zone name "hub" is taken`,
		"{on: c, customer: acme}":       "a group belongs to one customer",
		"x":                             "o:2: override: this is a single value: want a mapping",
	} {
		_, err := fleet.Parse(fleet.Source{Name: "o", Data: []byte("overrides:\n  - " + text)},
			fleet.Source{Name: "h", Data: []byte(three)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// A host that two sources define is a mistake, and the message names both places.
func TestJoinRefusesAHostTwice(t *testing.T) {
	t.Parallel()
	entry := func(file, name string) fleet.Entry {
		return fleet.Entry{File: file, Line: 7, Host: fleet.Host{Name: name, Address: "x", Port: 22,
			User: "root", Zone: "default", Fence: fleet.FenceAuto}}
	}
	own := fleet.Read(fleet.Source{Name: "h", Data: []byte(three)})
	_, err := fleet.Join(own, fleet.Part{Files: []string{"f"},
		Entries: []fleet.Entry{entry("f", "a"), entry("f", "d"), entry("f", "e f")}})
	want := `f:7: host "e f": name "e f" has ' ': use letters, digits, '.', '-' and '_'
f:7: host a is there already at h:4: names must differ`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	inv, err := fleet.Join(own, fleet.Part{Files: []string{"f"}, Entries: []fleet.Entry{entry("f", "d")}})
	if err != nil {
		t.Fatal(err)
	}
	if file, line := inv.Place("d"); file != "f" || line != 7 {
		t.Error(file, line)
	}
	if diff := cmp.Diff([]string{"a", "c", "d"}, inv.WithoutKey()); diff != "" {
		t.Error(diff)
	}
}
