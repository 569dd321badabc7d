package fleet_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
)

func TestJumpHostsAreResolved(t *testing.T) {
	t.Parallel()
	const text = `
defaults: {known_hosts: /kh, key: /k}
hosts:
  - {name: outer, address: outer.example.com, user: hop, port: 2222}
  - {name: inner, address: 10.0.0.1, jump: outer, certificate: /c}
  - {name: other, address: 10.0.0.2, jump: [outer], profile: legacy, principals: [x, y]}
  - {name: a, address: 10.1.0.1, jump: inner}
  - {name: b, address: 10.1.0.2, jump: [inner, other]}
  - {name: c, address: 10.1.0.3, jump: [inner]}
`
	inv := parse(t, text)
	for name, want := range map[string]string{
		"outer": "", "inner": "outer", "other": "outer", "a": "outer inner",
		"b": "outer inner other", "c": "outer inner",
	} {
		if got := strings.Join(way(t, inv, name), " "); got != want {
			t.Errorf("way to %s is %q, want %q", name, got, want)
		}
	}
	b, _ := inv.Host("b")
	want := []fleet.Hop{
		{Name: "outer", Address: "outer.example.com", Port: 2222, User: "hop", Key: "/k"},
		{Name: "inner", Address: "10.0.0.1", Port: 22, User: "root", Key: "/k", Certificate: "/c"},
		{Name: "other", Address: "10.0.0.2", Port: 22, User: "root", Key: "/k",
			Profile: fleet.ProfileLegacy, HostCert: fleet.HostCert{Principals: []string{"x", "y"}}},
	}
	if diff := cmp.Diff(want, b.Jump); diff != "" {
		t.Errorf("hops (-want +got):\n%s", diff)
	}
}

// Keys that are found for a jump host after parsing also reach the hosts behind it.
func TestTrustOfAJumpHostReachesThoseBehindIt(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
defaults: {known_hosts: /kh}
hosts:
  - {name: jump, address: jump}
  - {name: a, address: a, jump: jump}
  - {name: b, address: b, jump: [jump, a]}
`)
	before := inv.Version()
	trust := fleet.Trust{HostKeys: []string{keyA}, HostCAs: []string{keyB}, Revoked: []string{keyEC}}
	if err := inv.SetTrust("jump", trust); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		h, _ := inv.Host(name)
		got := fleet.Trust{h.Jump[0].HostKeys, h.Jump[0].HostCAs, h.Jump[0].Revoked}
		if diff := cmp.Diff(trust, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if inv.Version() == before {
		t.Error("the version did not change")
	}
	if err := inv.SetTrust("a", fleet.Trust{Revoked: []string{keyA}}); err == nil {
		t.Error("a host without any key was taken")
	}
	if err := inv.SetTrust("a", fleet.Trust{HostCAs: []string{"x"}}); err == nil {
		t.Error("an authority that is no key was taken")
	}
}

func TestADefaultJumpHostIsReachedWithoutAJump(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
defaults: {known_hosts: /kh, jump: [j1, j2]}
hosts:
  - {name: j1, address: j1}
  - {name: j2, address: j2}
  - {name: a, address: a}
  - {name: b, address: b, jump: []}
`)
	for name, want := range map[string]string{"j1": "", "j2": "j1", "a": "j1 j2", "b": ""} {
		if got := strings.Join(way(t, inv, name), " "); got != want {
			t.Errorf("way to %s is %q, want %q", name, got, want)
		}
	}
}

func TestJumpHostsMayStandInOtherFiles(t *testing.T) {
	t.Parallel()
	inv, err := fleet.Parse(
		source("a.yaml", "hosts: [{name: a, address: a, jump: j, known_hosts: /k}]"),
		source("j.yaml", "hosts: [{name: j, address: j, known_hosts: /k}]"))
	if err != nil {
		t.Fatal(err)
	}
	if got := way(t, inv, "a"); !slices.Equal(got, []string{"j"}) {
		t.Errorf("way %q", got)
	}
}

func TestJumpMistakes(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	long.WriteString("hosts:\n  - {name: h0, address: h, known_hosts: /k}\n")
	for i := range 9 {
		fmt.Fprintf(&long, "  - {name: h%d, address: h, known_hosts: /k, jump: h%d}\n", i+1, i)
	}
	for _, test := range []struct {
		name, yaml string
		wants      []string
	}{
		{"unknown", `
hosts:
  - {name: bastion1, address: b, known_hosts: /k}
  - {name: a, address: a, known_hosts: /k, jump: bastoin1}
`, []string{`4: jump host "bastoin1" is not in the inventory: did you mean bastion1?`}},
		{"unknown by default is said once", `
defaults: {known_hosts: /k, jump: [gone]}
hosts: [{name: a, address: a}, {name: b, address: b}]
`, []string{`2: jump host "gone" is not in the inventory`}},
		{"itself", `
hosts:
  - {name: a, address: a, known_hosts: /k, jump: a}
  - {name: b, address: a, known_hosts: /k}
  - {name: c, address: a, known_hosts: /k, jump: [b, c]}
`, []string{"3: host a: jump goes in a circle, a → a", "5: host c cannot be reached through itself"}},
		{"a circle", `
hosts:
  - {name: x, address: a, known_hosts: /k, jump: a}
  - {name: a, address: a, known_hosts: /k, jump: b}
  - {name: b, address: a, known_hosts: /k, jump: c}
  - {name: c, address: a, known_hosts: /k, jump: a}
`, []string{`6: host c: jump goes in a circle, a → b → c → a: one of them must have "jump: []"`}},
		{"twice", `
hosts:
  - {name: j, address: a, known_hosts: /k}
  - {name: a, address: a, known_hosts: /k, jump: [j]}
  - {name: b, address: a, known_hosts: /k, jump: [a, j]}
`, []string{`5: host b: jump passes host "j" twice: j → a → j`}},
		{"too far", long.String(), []string{"11: host h9: jump has 9 hosts on the way: at most 8"}},
		{"not names", `
hosts:
  - {name: a, address: a, known_hosts: /k, jump: "root@b:22"}
  - {name: b, address: a, known_hosts: /k, jump: {host: x}}
  - {name: c, address: a, known_hosts: /k, jump: ""}
  - {name: d, address: a, known_hosts: /k, jump: }
`, []string{"3: host a: jump name", "4: host b: jump is a mapping", "5: host c: jump name is empty",
			"6: host d: jump has no value"}},
		{"the other fields", `
hosts:
  - name: a
    address: a
    certificate: c
    host_ca: nonsense
    principals: ["", "a b", "*.x"]
    revoked: [ssh-ed25519]
    profile: legcy
`, []string{"3: host a: neither host_key, host_ca nor known_hosts", `5: host a: certificate path "c"`,
			"6: host a: host_ca", "7: host a: principals is empty", `7: host a: principals "a b"`,
			`7: host a: principals "*.x" has a wildcard`, "8: host a: revoked",
			"9: host a: profile \"legcy\": want legacy or nothing: did you mean legacy?"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			wantMistakes(t, test.yaml, test.wants)
		})
	}
}

func TestAnAuthorityIsEnoughToKnowAHost(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
defaults: {host_ca: ["`+keyA+` the authority", "`+keyB+`"], revoked: "`+keyEC+`"}
hosts:
  - {name: a, address: a, principals: fw.example.com}
  - {name: b, address: b, host_ca: "`+keyB+`", revoked: []}
  - {name: c, address: c, host_ca: [], host_key: "`+keyA+`"}
`)
	for name, want := range map[string]fleet.Trust{
		"a": {HostCAs: []string{keyA, keyB}, Revoked: []string{keyEC}},
		"b": {HostCAs: []string{keyB}},
		"c": {HostKeys: []string{keyA}, Revoked: []string{keyEC}},
	} {
		h, _ := inv.Host(name)
		got := fleet.Trust{h.HostKeys, h.HostCAs, h.Revoked}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestPublishedHostsKeepTheWay(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
defaults: {host_ca: "`+keyA+`", profile: legacy, certificate: /c, key: /k, principals: p}
hosts:
  - {name: j, address: j, host_key: "`+keyB+`"}
  - {name: a, address: a, jump: j}
`)
	text, err := json.Marshal(inv.Hosts())
	if err != nil {
		t.Fatal(err)
	}
	var hosts []fleet.Host
	if err := json.Unmarshal(text, &hosts); err != nil {
		t.Fatal(err)
	}
	again, err := fleet.New(hosts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(inv.Hosts(), again.Hosts()); diff != "" {
		t.Errorf("hosts (-first +again):\n%s", diff)
	}
	hosts[0].Jump[0].Address = "-oProxyCommand=x"
	hosts[0].Jump = append(hosts[0].Jump, hosts[0].Jump[0])
	_, err = fleet.New(hosts)
	if err == nil || !strings.Contains(err.Error(), "passes host \"j\" twice") ||
		!strings.Contains(err.Error(), "starts with '-'") {
		t.Errorf("a bad way was taken: %v", err)
	}
}

// Thousands of hosts behind one jump host share one slice of hops.
func TestHostsShareTheirWay(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
defaults: {known_hosts: /kh, jump: j}
hosts: [{name: j, address: j}, {name: a, address: a}, {name: b, address: b}]
`)
	a, _ := inv.Host("a")
	b, _ := inv.Host("b")
	if &a.Jump[0] != &b.Jump[0] {
		t.Error("each host has a copy of the same way")
	}
}

func way(t *testing.T, inv *fleet.Inventory, name string) []string {
	t.Helper()
	h, ok := inv.Host(name)
	if !ok {
		t.Fatalf("no host %s", name)
	}
	var names []string
	for _, hop := range h.Jump {
		names = append(names, hop.Name)
	}
	return names
}
