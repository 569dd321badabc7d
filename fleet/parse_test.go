package fleet_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
)

const (
	keyA   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBEXwyoh5iqF2LwXfVlSFCTn9eezaetBSn2TWzW6b1ND"
	keyB   = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP+c/FYVxRkynBNfqFyPPnet2XBRqf+GTV1O2h823OVD"
	keyEC  = "ecdsa-sha2-nistp256 " + blobEC
	blobEC = "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBLXNQXsDn+iOaPtkpx/y9IcP" +
		"mqJ8f+f9s/AXOdFqvcMhwFZMIr3BQeyLzQIBYfXl3jOpo2dOOug+KKM+bH+DXSc="
)

func TestParseReadsEveryField(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
defaults: {user: admin, port: 2022, key: /k, known_hosts: /kh, customer: acme, zone: fra, fence: none}
hosts:
  - name: fw002
    address: 127.77.0.2
    port: 2222
    user: root
    key: /other
    customer: globex
    zone: default
    group: pair-1
    fence: required
    labels: {role: fw, rack: 007, drained: true, empty: ""}
    host_keys: ["`+keyA+` comment", "`+keyEC+`", "`+keyA+`"]
  - {name: fw003, address: fw3.example.com, host_key: "`+keyB+`", customer: globex, zone: default, group: pair-1}
  - {name: "001", address: "2001:db8::1", key: "", customer: ""}
`)
	want := []fleet.Host{
		{
			Name: "001", Address: "2001:db8::1", Port: 2022, User: "admin", Zone: "fra",
			Fence: fleet.FenceNone,
		},
		{
			Name: "fw002", Address: "127.77.0.2", Port: 2222, User: "root", Key: "/other",
			HostKeys: []string{keyA, keyEC}, Customer: "globex", Zone: "default", Group: "pair-1",
			Fence:  fleet.FenceRequired,
			Labels: map[string]string{"role": "fw", "rack": "007", "drained": "true", "empty": ""},
		},
		{
			Name: "fw003", Address: "fw3.example.com", Port: 2022, User: "admin", Key: "/k",
			HostKeys: []string{keyB}, Customer: "globex", Zone: "default", Group: "pair-1",
			Fence: fleet.FenceNone,
		},
	}
	if diff := cmp.Diff(want, inv.Hosts()); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{"001": "/kh", "fw002": "", "fw003": "", "none": ""} {
		if got := inv.KnownHosts(name); got != want {
			t.Errorf("KnownHosts(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestParseFillsInDefaults(t *testing.T) {
	t.Parallel()
	inv := parse(t, "hosts: [{name: a, address: b, known_hosts: /kh}]")
	want := fleet.Host{
		Name: "a", Address: "b", Port: 22, User: "root", Zone: fleet.DefaultZone,
		Fence: fleet.FenceAuto,
	}
	got, ok := inv.Host("a")
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("Host(a) = %t (-want +got):\n%s", ok, diff)
	}
}

func TestDefaultsHoldForTheirFileOnly(t *testing.T) {
	t.Parallel()
	one := source("one.yaml", "defaults: {user: x, known_hosts: /1}\nhosts: [{name: a, address: a}]")
	two := source("two.yaml", "defaults: {known_hosts: /2}\nhosts: [{name: b, address: b}]")
	inv, err := fleet.Parse(one, two)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := inv.Host("a")
	b, _ := inv.Host("b")
	if a.User != "x" || b.User != "root" || inv.KnownHosts("b") != "/2" {
		t.Errorf("a.User %q, b.User %q, b in %q; want x, root, /2", a.User, b.User, inv.KnownHosts("b"))
	}
}

// Each case is a whole file with all the mistakes that Parse must report for it.
func TestParseReportsEveryMistakeWithItsLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 300)
	tests := []struct {
		name  string
		yaml  string
		wants []string // "line: part of the text"
	}{
		{"empty file", "", []string{"1: the file is empty"}},
		{"only a comment", "# nothing\n", []string{"1: the file is empty"}},
		{"only a marker", "---\n", []string{"2: the file is empty: want a mapping"}},
		{"a list", "- a\n", []string{"1: the file is a list: want a mapping"}},
		{"no hosts", "defaults: {user: a}\n", []string{"1: hosts is missing"}},
		{"hosts empty", "\nhosts:\n", []string{"2: hosts is empty: want a list"}},
		{"hosts a mapping", "hosts: {a: b}\n", []string{"1: hosts is a mapping: want a list"}},
		{"unknown top key", "host: []\nhosts: []\n", []string{`1: unknown key "host": did you mean hosts?`}},
		{"unknown keys", `
defaults: {usr: x}
hosts:
  - name: a
    adress: b
    address: b
    known_hosts: /k
    whatever: 1
`, []string{
			`2: defaults: unknown key "usr": did you mean user?`,
			`5: host a: unknown key "adress": did you mean address?`,
			`8: host a: unknown key "whatever": want one of name, address`,
		}},
		{"wrong types", `
defaults: [x]
hosts:
  - x
  - name: [a]
    address: {b: c}
    known_hosts: /k
    port: "22"
    labels: [x]
    user:
  - name: b
    address: b
    labels: {a: {b: c}, d: , ? [x] : y}
    host_keys: x
`, []string{
			"2: defaults: this is a list: want a mapping",
			"4: host 1 of the list: this is a single value: want a mapping",
			"5: host 2 of the list: name is a list: want a single value",
			"6: host 2 of the list: address is a mapping",
			`8: host 2 of the list: port "22" is not a number`,
			"9: host 2 of the list: labels is a list: want a mapping",
			"10: host 2 of the list: user has no value",
			`13: host b: a key is a list`,
			`13: host b: label "a" is a mapping`,
			`13: host b: label "d" has no value`,
			"14: host b: host_keys is a single value: want a list",
		}},
		{"missing fields", "hosts:\n  - {known_hosts: /k}\n  - {name: a, address: b}\n", []string{
			"2: host 1 of the list: name is missing",
			"2: host 1 of the list: address is missing",
			"3: host a: neither host_key, host_ca nor known_hosts",
		}},
		{"duplicate names", `
hosts:
  - {name: a, address: b, known_hosts: /k}
  - {name: A, address: b, known_hosts: /k}
  - {name: a, address: c, known_hosts: /k}
`, []string{"5: host a is there already at fleet.yaml:3: names must differ"}},
		{"duplicate keys", `
hosts:
  - name: a
    address: b
    known_hosts: /k
    address: c
    labels: {x: y, x: z}
defaults: {}
hosts: []
`, []string{
			`6: host a: key "address" is there already, at line 4`,
			`7: host a: key "x" is there already, at line 7`,
			`9: key "hosts" is there already, at line 2`,
		}},
		{"bad names", `
hosts:
  - {name: "fw 1", address: b, known_hosts: /k}
  - {name: "fw\n1", address: b, known_hosts: /k}
  - {name: -oProxyCommand=x, address: b, known_hosts: /k}
  - {name: ` + long + `, address: b, known_hosts: /k}
  - {name: "", address: b, known_hosts: /k}
  - {name: all, address: b, known_hosts: /k}
  - {name: ok, address: b, known_hosts: /k, zone: a b, customer: "a:b", group: "{g}"}
  - {name: ok2, address: b, known_hosts: /k, zone: ""}
`, []string{
			`3: host "fw 1": name "fw 1" has ' '`,
			`4: host "fw\n1": name "fw\n1" has '\n'`,
			`5: host "-oProxyCommand=x": name "-oProxyCommand=x" starts with "-"`,
			`has 300 bytes: at most 253`,
			`7: host 5 of the list: name is empty`,
			`8: host all: name "all" means every host in a selector`,
			`9: host ok: group name "{g}" has '{'`,
			`9: host ok: customer name "a:b" has ':'`,
			`9: host ok: zone name "a b" has ' '`,
			`10: host ok2: zone name is empty`,
		}},
		{"bad ports", `
defaults: {port: 0}
hosts:
  - {name: a, address: b, known_hosts: /k, port: 65536}
  - {name: b, address: b, known_hosts: /k, port: -1}
  - {name: c, address: b, known_hosts: /k, port: 022}
  - {name: d, address: b, known_hosts: /k, port: 0x16}
  - {name: e, address: b, known_hosts: /k, port: 22.0}
  - {name: f, address: b, known_hosts: /k, port: 99999999999999999999}
  - {name: g, address: b, known_hosts: /k, port: ssh}
`, []string{
			"2: defaults: port 0: want 1 to 65535",
			"4: host a: port 65536: want", "5: host b: port -1: want", `6: host c: port "022"`,
			`7: host d: port "0x16"`, `8: host e: port "22.0"`, "9: host f: port", `10: host g: port "ssh"`,
		}},
		{"bad users, paths, fences", `
defaults: {known_hosts: known_hosts}
hosts:
  - {name: a, address: b, known_hosts: /k, user: -x, key: ~/.ssh/id}
  - {name: b, address: b, known_hosts: "/k\n", user: "a b", fence: nome}
  - {name: c, address: b, known_hosts: /k, user: "", fence: no}
`, []string{
			`2: defaults: known_hosts path "known_hosts" depends on where it is read`,
			`4: host a: user "-x" starts with '-'`,
			`4: host a: key path "~/.ssh/id" depends on where it is read`,
			`5: host b: user "a b" has a blank`,
			`5: host b: known_hosts path "/k\n" has a control character`,
			`5: host b: fence "nome": want auto, none or required: did you mean none?`,
			`6: host c: user is empty`,
			`6: host c: fence "no": want auto, none or required`,
		}},
		{"groups", `
defaults: {known_hosts: /k}
hosts:
  - {name: a, address: b, group: g1, customer: x}
  - {name: b, address: b, group: g2}
  - {name: c, address: b, group: g2, zone: fra}
  - {name: d, address: b, group: g2, customer: x}
`, []string{
			`6: host c is in zone "fra", but host b of the same group "g2" at fleet.yaml:5 is in zone "default"`,
			`7: host d is of customer "x", but host b of the same group "g2" at fleet.yaml:5 is of ""`,
		}},
		{"host keys", `
hosts:
  - {name: a, address: b, host_key: ""}
  - {name: b, address: b, host_key: ssh-ed25519}
  - {name: c, address: b, host_key: "ssh-ed25518 AAAA"}
  - {name: d, address: b, host_key: "fw1 ` + keyA + `"}
  - {name: e, address: b, host_key: "ssh-ed25519 AAAA…"}
  - {name: f, address: b, host_key: "ssh-ed25519 ` + blobEC + `"}
  - {name: g, address: b, host_key: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5"}
  - {name: h, address: b, host_key: "` + keyA + `\n` + keyB + `"}
  - {name: i, address: b, host_key: "` + keyA + `", host_keys: ["` + keyB + `"]}
  - {name: j, address: b, host_key: "` + keyA + `", known_hosts: /k}
  - {name: k, address: b, host_keys: []}
  - {name: l, address: b, host_keys: ["` + keyA + `", [], "@cert-authority * ` + keyB + `"]}
`, []string{
			"3: host a: host key is empty", "4: host b: host key \"ssh-ed25519\" has only a type",
			"5: host c: host key \"ssh-ed25518 AAAA\" has no known type in front: did you mean ssh-ed25519?",
			"6: host d: host key \"fw1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBEXwyoh5iqF2LwXfVlS…\" starts with a host",
			"7: host e: host key \"ssh-ed25519 AAAA…\" is not valid base64",
			"8: host f: host key", "9: host g: host key", "10: host h: host key",
			"11: host i: host_key and host_keys are both given", "12: host j: known_hosts is given beside",
			"13: host k: host_keys is empty", "14: host l: host key is a list",
			"14: host l: host key \"@cert-authority",
		}},
		{"labels", `
hosts:
  - name: a
    address: b
    known_hosts: /k
    labels: {zone: x, "a b": c, d: "e f", -x: y, ` + long + `: z}
`, []string{
			`6: host a: label key "-x"`, `6: host a: label key "a b"`, `6: host a: label key "aaa`,
			`6: host a: label "d": value "e f"`, `6: host a: label "zone" is a field of its own`,
		}},
		{"too much of one host", "hosts:\n  - name: a\n    address: b\n    labels: {" +
			labels(65) + "}\n    host_keys:" + strings.Repeat("\n      - "+keyA, 33) + "\n", []string{
			"4: host a: 65 labels: at most 64", "6: host a: host_keys has 33 keys: at most 32",
		}},
		{"broken in a long line", "hosts:\n  - [" + strings.Repeat("{name: a}, ", 1000) + "}\n  - b\n",
			[]string{"3: not valid YAML, here or just above: did not find expected"}},
		{"second document", "hosts: []\n---\nhosts: []\n", []string{"2: a second YAML document"}},
		{"tab", "hosts:\n  - name: a\n\taddress: b\n", []string{"3: not valid YAML, here or just above: found a tab"}},
		{"tab in front", "hosts:\n\t- name: a\n", []string{"2: not valid YAML, here or just above: found character"}},
		{"broken far down", "hosts:\n" + strings.Repeat("  - {name: a, address: b}\n", 999) +
			"  - name: b\n   address: c\n" + strings.Repeat("  - {name: a, address: b}\n", 999),
			[]string{"1002: not valid YAML, here or just above: did not find expected"}},
		{"unclosed quote", "hosts:\n  - name: \"a\n", []string{
			"2: not valid YAML, here or just above: found unexpected end",
		}},
		{"not UTF-8", "hosts:\n  - name: a\xff\n", []string{"2: not valid YAML, here or just above: "}},
		{"NUL", "hosts:\n  - name: a\x00\n", []string{"2: not valid YAML, here or just above: control characters"}},
		{"alias", "a: &x [y]\nhosts: *x\n", []string{
			`1: unknown key "a"`, `2: hosts is the alias "*x": aliases are not supported`}},
		{"alias to nothing", "hosts: *x\n", []string{
			"1: not valid YAML, here or just above: unknown anchor 'x' referenced: aliases",
		}},
		{"alias in a host", "defaults: &d {user: a}\nhosts:\n  - {<<: *d, name: a, address: b, known_hosts: /k}\n",
			[]string{`3: host a: a key "<<" is not supported`}},
		{"tags", "hosts:\n  - {name: !secret a, address: !!binary YQ==, known_hosts: /k}\n", []string{
			`2: host 1 of the list: name has the tag "!secret"`, `2: host 1 of the list: address has the tag`}},
		{"tag on a list", "hosts: !set []\n", []string{`1: hosts has the tag "!set"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inv, err := fleet.Parse(source("fleet.yaml", tt.yaml))
			var got fleet.Mistakes
			if inv != nil || !errors.As(err, &got) {
				t.Fatalf("Parse = %v, %v; want Mistakes", inv, err)
			}
			for i := range max(len(got), len(tt.wants)) {
				switch {
				case i >= len(got):
					t.Errorf("missing: %s", tt.wants[i])
				case i >= len(tt.wants):
					t.Errorf("unexpected: %v", got[i])
				case !strings.Contains(got[i].Error(), tt.wants[i]):
					t.Errorf("mistake %d:\n got %v\nwant %s", i, got[i], tt.wants[i])
				case strings.ContainsAny(got[i].Error(), "\n\t"):
					t.Errorf("mistake %d has a line break: %q", i, got[i].Error())
				}
			}
		})
	}
}

func TestMistakesOfSeveralFilesAreReportedTogether(t *testing.T) {
	t.Parallel()
	_, err := fleet.Parse(
		source("b.yaml", "hosts:\n  - {name: a, address: b, known_hosts: /k}\n"),
		source("a.yaml", "hosts:\n\n  - {name: a, address: -b, known_hosts: /k}\n"),
		source("", "hosts:\n  ]\n"),
	)
	want := `a.yaml:3: host a: address "-b" starts with '-': want an IP address or a DNS name
a.yaml:3: host a is there already at b.yaml:2: names must differ
inventory:2: not valid YAML, here or just above: `
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got:\n%v\nwant:\n%s", err, want)
	}
}

func TestManyMistakesAreCounted(t *testing.T) {
	t.Parallel()
	_, err := fleet.Parse(source("f", "hosts:\n"+strings.Repeat("  - {}\n", 1000)))
	if err == nil || !strings.HasSuffix(err.Error(), "\nand 2900 more mistakes") {
		t.Errorf("error ends %q", err.Error()[max(0, len(err.Error())-100):])
	}
	if lines := strings.Count(err.Error(), "\n"); lines != 100 {
		t.Errorf("error has %d lines", lines)
	}
}

func TestParseBoundsItsInput(t *testing.T) {
	t.Parallel()
	if _, err := fleet.Parse(); err == nil {
		t.Error("no sources: no error")
	}
	half := fleet.Source{Name: "half", Data: make([]byte, 33<<20)}
	if _, err := fleet.Parse(half, half); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("66 MiB: %v", err)
	}
	// Deep nesting and aliases of aliases must end soon.
	deep := source("deep", "hosts: "+strings.Repeat("[", 100_000))
	if _, err := fleet.Parse(deep); err == nil {
		t.Error("100,000 brackets: no error")
	}
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 20 {
		item := fmt.Sprintf("*a%d,", i)
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(item, 10))
	}
	if _, err := fleet.Parse(source("bomb", bomb+"hosts: *a20\n")); err == nil {
		t.Error("alias bomb: no error")
	}
}

func TestExampleInventoryIsValid(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(filepath.Join("..", "etc", "examples", "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	inv, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: data})
	if err != nil {
		t.Fatal(err)
	}
	for selector, want := range map[string]string{ // the selectors in its last lines
		"fw[001-002]":            "fw[001-002]",
		"customer=acme,!drained": "fw[001-002]",
		"{role=fw}!fw002":        "fw001",
		"all":                    "bastion1,fw-old,fw[001-002],lb-berlin,vpn1",
	} {
		if got := pick(t, inv, selector); got != want {
			t.Errorf("%s picks %s, want %s", selector, got, want)
		}
	}
}

// labels returns n labels in a row.
func labels(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("l%d: v", i))
	}
	return strings.Join(all, ", ")
}

func source(name, text string) fleet.Source {
	return fleet.Source{Name: name, Data: []byte(text)}
}

func parse(t testing.TB, yaml string) *fleet.Inventory {
	t.Helper()
	inv, err := fleet.Parse(source("fleet.yaml", yaml))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// pick returns the hosts of a selection, folded.
func pick(t testing.TB, inv *fleet.Inventory, text string) string {
	t.Helper()
	sel, err := fleet.ParseSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := inv.Select(sel)
	if err != nil {
		t.Fatal(err)
	}
	return fleet.Fold(names(hosts))
}

func names(hosts []fleet.Host) []string {
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	return names
}
