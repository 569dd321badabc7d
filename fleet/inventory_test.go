package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
)

func TestInventoryAnswers(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
defaults: {known_hosts: /k}
hosts:
  - {name: b, address: b, zone: z2}
  - {name: a, address: a, zone: z1}
  - {name: c, address: c}
`)
	if got := inv.Len(); got != 3 {
		t.Errorf("Len = %d, want 3", got)
	}
	if got := names(inv.Hosts()); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("Hosts = %v, want them sorted", got)
	}
	if got := inv.Zones(); !slices.Equal(got, []string{"default", "z1", "z2"}) {
		t.Errorf("Zones = %v", got)
	}
	if h, ok := inv.Host("d"); ok || h.Name != "" {
		t.Errorf("Host(d) = %v, %t; want none", h, ok)
	}
	inv.Hosts()[0].Name = "changed"
	if _, ok := inv.Host("a"); !ok || inv.Hosts()[0].Name != "a" {
		t.Error("a caller's slice changed the inventory")
	}
}

func TestVersionDependsOnContentOnly(t *testing.T) {
	t.Parallel()
	const a = "  - {name: a, address: a, labels: {x: y, z: w}, host_key: \"" + keyA + "\"}\n"
	const b = "  - {name: b, address: b, host_key: \"" + keyB + "\"}\n"
	version := func(texts ...string) string {
		var sources []fleet.Source
		for i, text := range texts {
			sources = append(sources, source(fmt.Sprint(i), "hosts:\n"+text))
		}
		inv, err := fleet.Parse(sources...)
		if err != nil {
			t.Fatal(err)
		}
		return inv.Version()
	}
	first := version(a + b)
	if len(first) != 16 || strings.Trim(first, "0123456789abcdef") != "" {
		t.Errorf("version %q: want 16 hex digits", first)
	}
	same := map[string]string{
		"other order":          version(b + a),
		"two files":            version(b, a),
		"labels in an order":   version(strings.Replace(a, "x: y, z: w", "z: w, x: y", 1) + b),
		"a comment at the key": version(strings.Replace(a, keyA, keyA+" root@a", 1) + b),
		"a default spelled":    version(strings.Replace(a, "address: a", "address: a, port: 22", 1) + b),
	}
	for what, got := range same {
		if got != first {
			t.Errorf("%s: version %s, want %s", what, got, first)
		}
	}
	other := map[string]string{
		"fewer hosts":   version(a),
		"another key":   version(strings.Replace(a, keyA, keyB, 1) + b),
		"another port":  version(strings.Replace(a, "address: a", "address: a, port: 23", 1) + b),
		"another label": version(strings.Replace(a, "x: y", "x: Y", 1) + b),
	}
	for what, got := range other {
		if got == first {
			t.Errorf("%s: version %s is the same", what, got)
		}
	}
}

func TestSetHostKeys(t *testing.T) {
	t.Parallel()
	inv := parse(t, "hosts: [{name: a, address: a, known_hosts: /k}]")
	before := inv.Version()
	for name, keys := range map[string][]string{
		"nobody": {keyA}, "a": {}, "a ": {keyA},
	} {
		if err := inv.SetHostKeys(name, keys); err == nil {
			t.Errorf("SetHostKeys(%q, %q): no error", name, keys)
		}
	}
	if err := inv.SetHostKeys("a", []string{keyA, "ssh-ed25519 AAAA"}); err == nil {
		t.Error("a damaged key: no error")
	}
	if inv.Version() != before {
		t.Error("a refused key changed the version")
	}
	if err := inv.SetHostKeys("a", []string{keyB + " comment", keyA, keyB}); err != nil {
		t.Fatal(err)
	}
	h, _ := inv.Host("a")
	if diff := cmp.Diff([]string{keyB, keyA}, h.HostKeys); diff != "" {
		t.Errorf("host keys (-want +got):\n%s", diff)
	}
	if inv.Version() == before {
		t.Error("new keys did not change the version")
	}
}

func TestPublishedHostsMakeTheSameInventory(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
hosts:
  - {name: b, address: b, group: g, labels: {x: y}, host_key: "`+keyA+`"}
  - {name: a, address: "::1", group: g, host_key: "`+keyEC+`", known_hosts: ""}
`)
	text, err := json.Marshal(inv.Hosts())
	if err != nil {
		t.Fatal(err)
	}
	var hosts []fleet.Host
	if err := json.Unmarshal(text, &hosts); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(hosts)
	again, err := fleet.New(hosts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(inv.Hosts(), again.Hosts()); diff != "" {
		t.Errorf("hosts (-first +again):\n%s", diff)
	}
	if again.Version() != inv.Version() {
		t.Errorf("version %s, want %s", again.Version(), inv.Version())
	}
}

func TestNewReportsEveryMistake(t *testing.T) {
	t.Parallel()
	ok := fleet.Host{
		Name: "a", Address: "a", Port: 22, User: "root", Zone: "z", Fence: fleet.FenceAuto,
	}
	_, err := fleet.New([]fleet.Host{ok, ok, {
		Name: "-x", Labels: map[string]string{"a b": "c", "zone": "x"}, Key: "k", Customer: ":",
		HostKeys: []string{"x"},
	}})
	var mistakes fleet.Mistakes
	if !errors.As(err, &mistakes) {
		t.Fatalf("error %v: want Mistakes", err)
	}
	wants := []string{
		`host "-x": name "-x" starts with "-"`, "address is empty", "port 0", "user is empty",
		`key path "k"`, `host_keys "x" has no known type`, `customer name ":"`, "zone name is empty",
		`fence ""`, `label key "a b"`, `label "zone" is a field`,
		"host a is there already: names",
	}
	if len(mistakes) != len(wants) {
		t.Errorf("%d mistakes, want %d:\n%v", len(mistakes), len(wants), err)
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
}

func TestAGroupWithOneMemberIsAWarning(t *testing.T) {
	t.Parallel()
	text := "defaults: {known_hosts: /k}\nhosts:\n  - {name: a, address: a, group: g}\n"
	v, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	want := `fleet.yaml:3: host a is the only member of group "g", which protects nothing: ` +
		"a group has two or more"
	if got := v.Warnings(); len(got) != 1 || got[0].Error() != want {
		t.Errorf("warnings are %v", got)
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	good := []string{
		"192.0.2.1", "127.77.0.1", "::1", "2001:db8::40", "fe80::1%eth0", "::ffff:192.0.2.1", "fw1",
		"FW1.Example.com", "fw1.example.com.", "1fw", "_ssh.example.com", "xn--bcher-kva.example",
		strings.Repeat("a.", 126) + "a", "0xfw", "cafe", "a--b", "10.example",
	}
	for _, address := range good {
		if err := newHost(address); err != nil {
			t.Errorf("address %q: %v", address, err)
		}
	}
	bad := map[string]string{ // address → part of the message
		"":                               "is empty",
		"fw 1":                           "blank",
		" fw1":                           "blank",
		"fw1\n":                          "control character",
		"fw1\x00":                        "control character",
		"fw1\u00a0":                      "blank",
		"-oProxyCommand=touch /tmp/x":    "starts with '-'",
		"-1":                             "starts with '-'",
		strings.Repeat("a", 300):         "has 300 bytes: at most 253",
		strings.Repeat("a.", 126) + "ab": "has 254 bytes",
		strings.Repeat("a", 64) + ".com": "1 to 63 bytes",
		"root@fw1":                       "under user",
		"fw1:22":                         "under port",
		"192.0.2.1:22":                   "under port",
		"fw1:":                           "under port",
		"[2001:db8::1]":                  "without brackets",
		"[2001:db8::1]:22":               "without brackets",
		"ssh://fw1":                      "URL",
		"fw1..example.com":               "cannot be a part",
		".":                              "cannot be a part",
		".fw1":                           "cannot be a part",
		"fw1.-a":                         "cannot be a part",
		"fw1-.com":                       "cannot be a part",
		"fw1/24":                         "want letters",
		"fẃ1":                            "want letters",
		"a;b":                            "want letters",
		"$(reboot)":                      "want letters",
		"2001:db8::g":                    "want letters",
		"192.0.2.256":                    "not an IP address",
		"192.0.2":                        "not an IP address",
		"127.1":                          "not an IP address",
		"010.0.0.1":                      "not an IP address",
		"0x7f000001":                     "not an IP address",
		"0X7F.1":                         "not an IP address",
		"3232235777":                     "not an IP address",
		"99999999999999999999":           "not an IP address",
		"0.0.0.0":                        "not the address of one host",
		"::":                             "not the address of one host",
		"224.0.0.1":                      "not the address of one host",
		"fe80::1%-x":                     "name of an interface",
		"fe80::1%e;x":                    "name of an interface",
	}
	for address, want := range bad {
		err := newHost(address)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("address %q: error %v, want %q", address, err, want)
		}
		if err != nil && (len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\n\x00")) {
			t.Errorf("address %q: unfit message %q", address, err)
		}
	}
}

// newHost returns an inventory of one host with this address.
func newHost(address string) error {
	_, err := fleet.New([]fleet.Host{{
		Name: "a", Address: address, Port: 22, User: "root", Zone: "z", Fence: fleet.FenceAuto,
	}})
	return err
}
